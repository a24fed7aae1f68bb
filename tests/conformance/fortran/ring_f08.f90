! Module mpi_f08: types of handles and statuses, error codes left out.
program f08
  use mpi_f08
  use, intrinsic :: iso_c_binding, only: c_associated, c_f_pointer, c_loc, c_ptr
  implicit none
  integer :: rank, n, i, index, got
  type(MPI_Request) :: requests(2)
  type(MPI_Status) :: s
  type(MPI_Comm) :: ring
  real(8) :: x(4), y(4), total
  logical :: periods(1) = [.true.], flag
  character(len=MPI_MAX_PROCESSOR_NAME) :: name
  integer(MPI_ADDRESS_KIND) :: ub
  type(c_ptr) :: memory
  type(MPI_Win) :: win
  integer, pointer :: words(:)
  character, target :: room(4096)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, n)
  call MPI_Cart_create(MPI_COMM_WORLD, 1, [n], periods, .false., ring)
  x = rank
  call MPI_Irecv(y, 4, MPI_DOUBLE_PRECISION, modulo(rank - 1, n), 7, ring, requests(1))
  call MPI_Isend(x, 4, MPI_DOUBLE_PRECISION, modulo(rank + 1, n), 7, ring, requests(2))
  do i = 1, 2
    call MPI_Waitany(2, requests, index, s)
    if (index == 1) then
      call MPI_Get_count(s, MPI_DOUBLE_PRECISION, got)
      if (got /= 4 .or. s%MPI_TAG /= 7) error stop
    end if
  end do
  total = y(1)
  call MPI_Allreduce(MPI_IN_PLACE, total, 1, MPI_REAL8, MPI_SUM, MPI_COMM_WORLD)
  call MPI_Sendrecv(x, 4, MPI_REAL8, rank, 1, y, 4, MPI_REAL8, rank, 1, ring, MPI_STATUS_IGNORE)
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
  call MPI_Win_allocate(8_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, ring, memory, win)
  call c_f_pointer(memory, words, [2])
  words = -1
  call MPI_Win_fence(0, win)
  call MPI_Put(rank, 1, MPI_INTEGER, modulo(rank + 1, n), 1_MPI_ADDRESS_KIND, 1, MPI_INTEGER, win)
  call MPI_Win_fence(0, win)
  call MPI_F_sync_reg(words)
  if (words(1) /= -1 .or. words(2) /= modulo(rank - 1, n)) error stop
  call MPI_Win_free(win)
  call MPI_Buffer_attach(room, 4096)
  call MPI_Buffer_detach(memory, got)
  if (got /= 4096 .or. .not. c_associated(memory, c_loc(room))) error stop
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, ub, flag)
  call MPI_Get_processor_name(name, got)
  if (rank == 0) print '(F6.1,2L2,1X,A,L2)', total, flag, ub > 1000, name(:got), ring == MPI_COMM_WORLD
  call MPI_Finalize()
end program

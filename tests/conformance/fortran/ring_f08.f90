! Module mpi_f08: types of handles and statuses, error codes left out.
program f08
  use mpi_f08
  implicit none
  integer :: rank, n, i, index, got
  type(MPI_Request) :: requests(2)
  type(MPI_Status) :: s
  type(MPI_Comm) :: ring
  real(8) :: x(4), y(4), total
  logical :: periods(1) = [.true.], flag
  character(len=MPI_MAX_PROCESSOR_NAME) :: name
  integer(MPI_ADDRESS_KIND) :: ub
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
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, ub, flag)
  call MPI_Get_processor_name(name, got)
  if (rank == 0) print '(F6.1,2L2,1X,A,L2)', total, flag, ub > 1000, name(:got), ring == MPI_COMM_WORLD
  call MPI_Finalize()
end program

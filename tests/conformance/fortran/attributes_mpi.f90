! Module mpi: attributes and errors with callbacks, strings, types with addresses, a file, and waits for any.
module callbacks
  use mpi
  implicit none
  integer :: copies = 0, deletes = 0, errors = 0
contains
  subroutine copy(comm, keyval, extra_state, in, out, flag, ierror)
    integer :: comm, keyval, ierror
    integer(MPI_ADDRESS_KIND) :: extra_state, in, out
    logical :: flag
    copies = copies + 1
    out = in + extra_state
    flag = .true.
    ierror = MPI_SUCCESS
  end subroutine
  subroutine erase(comm, keyval, val, extra_state, ierror)
    integer :: comm, keyval, ierror
    integer(MPI_ADDRESS_KIND) :: val, extra_state
    deletes = deletes + 1
    ierror = MPI_SUCCESS
  end subroutine
  subroutine failed(comm, code)
    integer :: comm, code
    if (comm == MPI_COMM_WORLD .and. code /= MPI_SUCCESS) errors = errors + 1
  end subroutine
end module

program attributes
  use callbacks
  use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
  implicit none
  integer :: rank, n, ierr, keyval, comm, info, datatype, length, file, request(2), index, handler
  integer(MPI_ADDRESS_KIND) :: val, base, places(2)
  integer(MPI_OFFSET_KIND) :: offset
  logical :: flag
  character(len=20) :: text
  character(len=1) :: room(4096)
  integer :: taken(2)
  integer, pointer :: words(:)
  type(c_ptr) :: memory
  type :: pair
    integer :: first
    real(8) :: second
  end type
  type(pair) :: a, b
  call MPI_Init_thread(MPI_THREAD_SERIALIZED, length, ierr)
  if (length < MPI_THREAD_SERIALIZED) stop 1
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, n, ierr)

  call MPI_Comm_create_keyval(copy, erase, keyval, 5_MPI_ADDRESS_KIND, ierr)
  call MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, 37_MPI_ADDRESS_KIND, ierr)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierr)
  call MPI_Comm_get_attr(comm, keyval, val, flag, ierr)
  if (.not. flag .or. val /= 42 .or. copies /= 1) stop 2
  call MPI_Comm_free(comm, ierr)
  if (deletes /= 1) stop 3
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, val, flag, ierr)
  if (.not. flag .or. val < 32767) stop 4

  call MPI_Comm_create_errhandler(failed, handler, ierr)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler, ierr)
  call MPI_Send(n, 1, MPI_INTEGER, n, 0, MPI_COMM_WORLD, ierr)
  if (errors /= 1) stop 11
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL, ierr)

  call MPI_Info_create(info, ierr)
  call MPI_Info_set(info, 'key  ', 'some value   ', ierr)
  text = 'x'
  call MPI_Info_get(info, 'key', 20, text, flag, ierr)
  if (.not. flag .or. text /= 'some value') stop 5
  call MPI_Info_get(info, 'absent', 20, text, flag, ierr)
  if (flag .or. text /= 'some value') stop 12
  call MPI_Info_free(info, ierr)

  call MPI_Alloc_mem(8_MPI_ADDRESS_KIND, MPI_INFO_NULL, memory, ierr)
  call c_f_pointer(memory, words, [2])
  words = rank
  call MPI_Free_mem(words, ierr)
  call MPI_Alloc_mem(8_MPI_ADDRESS_KIND, MPI_INFO_NULL, val, ierr)
  if (val == 0) stop 13
  ! An integer is too short for an address: what lies behind it must stay.
  taken = 22
  call MPI_Buffer_attach(room, 4096, ierr)
  call MPI_Buffer_detach(taken(1), length, ierr)
  if (any(taken /= 22) .or. length /= 4096) stop 14

  call MPI_Get_address(a, base, ierr)
  call MPI_Get_address(a%first, places(1), ierr)
  call MPI_Get_address(a%second, places(2), ierr)
  call MPI_Type_create_struct(2, [1, 1], places - base, [MPI_INTEGER, MPI_DOUBLE_PRECISION], datatype, ierr)
  call MPI_Type_commit(datatype, ierr)
  a = pair(rank, rank / 2d0)
  call MPI_Irecv(b, 1, datatype, modulo(rank - 1, n), 0, MPI_COMM_WORLD, request(1), ierr)
  call MPI_Isend(a, 1, datatype, modulo(rank + 1, n), 0, MPI_COMM_WORLD, request(2), ierr)
  call MPI_Waitany(2, request, index, MPI_STATUS_IGNORE, ierr)
  if (index /= 1 .and. index /= 2) stop 6
  call MPI_Waitall(2, request, MPI_STATUSES_IGNORE, ierr)
  call MPI_Waitany(2, request, index, MPI_STATUS_IGNORE, ierr)
  if (index /= MPI_UNDEFINED) stop 7
  if (b%first /= modulo(rank - 1, n) .or. b%second /= b%first / 2d0) stop 8
  call MPI_Type_free(datatype, ierr)

  call MPI_File_open(MPI_COMM_WORLD, 'numbers.bin', MPI_MODE_CREATE + MPI_MODE_RDWR + MPI_MODE_DELETE_ON_CLOSE, &
                     MPI_INFO_NULL, file, ierr)
  offset = rank * 4
  call MPI_File_write_at_all(file, offset, rank, 1, MPI_INTEGER, MPI_STATUS_IGNORE, ierr)
  call MPI_File_sync(file, ierr)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  offset = (n - 1 - rank) * 4
  call MPI_File_read_at_all(file, offset, length, 1, MPI_INTEGER, MPI_STATUS_IGNORE, ierr)
  if (length /= n - 1 - rank) stop 9
  call MPI_File_close(file, ierr)
  if (file /= MPI_FILE_NULL) stop 10
  if (rank == 0) print '(A)', 'attributes, errors, strings, types, files'
  call MPI_Finalize(ierr)
end program

! Deadlocks among threads of Fortran programs: all wait in a thread of pthread_create ("thread") or of OpenMP ("openmp"),
! or for a manager thread that has ended ("manager").
program threads_wait
  use, intrinsic :: iso_c_binding
  use mpi
  use omp_lib
  implicit none
  interface
    integer(c_int) function pthread_create(id, attributes, start, argument) bind(c)
      import
      integer(c_long) :: id
      type(c_ptr), value :: attributes
      type(c_funptr), value :: start
      type(c_ptr), value :: argument
    end function
    integer(c_int) function pthread_join(id, result) bind(c)
      import
      integer(c_long), value :: id
      type(c_ptr), value :: result
    end function
    integer(c_int) function pipe(ends) bind(c)
      import
      integer(c_int) :: ends(2)
    end function
    integer(c_size_t) function read_bytes(file, to, bytes) bind(c, name="read")
      import
      integer(c_int), value :: file
      character(kind=c_char) :: to
      integer(c_size_t), value :: bytes
    end function
  end interface
  character(len=8) :: mode
  integer :: provided, error, rank
  integer(c_long) :: thread
  integer(c_int) :: ends(2)
  character(kind=c_char) :: byte

  call get_command_argument(1, mode)
  call MPI_Init_thread(MPI_THREAD_MULTIPLE, provided, error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  select case (mode)
  case ("thread")
    error = pthread_create(thread, c_null_ptr, c_funloc(receive), c_null_ptr)
    error = pthread_join(thread, c_null_ptr)
  case ("openmp")
    !$omp parallel num_threads(2)
    if (omp_get_thread_num() == 1) call receive_from_other(6)
    !$omp barrier
    !$omp end parallel
  case ("manager")
    error = pipe(ends)
    error = pthread_create(thread, c_null_ptr, c_funloc(die), c_null_ptr)
    error = int(read_bytes(ends(1), byte, 1_c_size_t))  ! nobody answers
  end select
  call MPI_Finalize(error)

contains

  subroutine receive_from_other(tag)
    integer, intent(in) :: tag
    integer :: value, status
    call MPI_Recv(value, 1, MPI_INTEGER, 1 - rank, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE, status)
  end subroutine

  type(c_ptr) function receive(argument) bind(c)
    type(c_ptr), value :: argument
    call receive_from_other(5)
    receive = argument
  end function

  type(c_ptr) function die(argument) bind(c)
    type(c_ptr), value :: argument
    die = argument
  end function
end program

! What shows.c prints, over MPI's functions for C: not every library has its own for Fortran.
program shows
  use, intrinsic :: iso_c_binding
  implicit none
  interface
    subroutine begin(rank) bind(c)
      import :: c_int
      integer(c_int), intent(out) :: rank
    end subroutine
    subroutine synchronise() bind(c)
    end subroutine
    subroutine finish() bind(c)
    end subroutine
    function mpi_clock() bind(c)
      import :: c_double
      real(c_double) :: mpi_clock
    end function
    function sleep_us(time) bind(c, name='usleep')
      import :: c_int
      integer(c_int), value :: time
      integer(c_int) :: sleep_us
    end function
    function date_of(place) bind(c, name='time')
      import :: c_long, c_ptr
      type(c_ptr), value :: place
      integer(c_long) :: date_of
    end function
  end interface
  integer(c_int) :: rank, error
  integer(c_long) :: date
  real(c_double) :: before
  character(len=100) :: host
  call begin(rank)
  call hostnm(host)
  date = date_of(c_null_ptr)
  before = mpi_clock()
  error = sleep_us(500000_c_int)
  call synchronise()
  print '(i0, 1x, i0, 1x, a, 1x, f5.3)', rank, date, trim(host), mpi_clock() - before
  call finish()
end program

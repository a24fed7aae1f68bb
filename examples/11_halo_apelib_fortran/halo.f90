! Relaxation of a field on a periodic lattice, 8^3 sites on each rank: a halo exchange of six faces in each step, and a
! global sum at the end.
program halo_exchange
  use, intrinsic :: iso_c_binding, only: c_double, c_int, c_int64_t, c_loc, c_size_t
  use apelib
  implicit none

  integer, parameter :: l = 8, steps = 20
  real(c_double) :: field(0:l+1, 0:l+1, 0:l+1), next(l, l, l)  ! with the neighbours' sites around
  real(c_double), target :: out(l, l, 0:5), in(l, l, 0:5), action, exchange_us
  integer(c_int) :: rank, ranks, count, dims(APE_MAX_DIMS), here(APE_MAX_DIMS), d
  integer(ape_halo) :: halo
  integer(c_size_t), parameter :: face_bytes = 8 * l * l
  integer(c_int64_t) :: start, finish, rate
  integer :: x, y, z, step

  call check(ape_init())
  call check(ape_rank(rank))
  call check(ape_size(ranks))
  call check(ape_dims(count, dims))
  call check(ape_coords(rank, here))

  call check(ape_halo_create(halo))
  do d = 0, 5
    call check(ape_halo_face(halo, d, c_loc(out(1, 1, d)), c_loc(in(1, 1, d)), face_bytes))
  end do

  do z = 1, l
    do y = 1, l
      do x = 1, l
        field(x, y, z) = mod(7 * (here(1) * l + x - 1) + 13 * (here(2) * l + y - 1) + 29 * (here(3) * l + z - 1), 17)
      end do
    end do
  end do

  exchange_us = 0
  do step = 1, steps
    out(:, :, APE_PLUS_X) = field(l, 1:l, 1:l)
    out(:, :, APE_MINUS_X) = field(1, 1:l, 1:l)
    out(:, :, APE_PLUS_Y) = field(1:l, l, 1:l)
    out(:, :, APE_MINUS_Y) = field(1:l, 1, 1:l)
    out(:, :, APE_PLUS_Z) = field(1:l, 1:l, l)
    out(:, :, APE_MINUS_Z) = field(1:l, 1:l, 1)
    call system_clock(start, rate)
    call check(ape_halo_start(halo))
    call check(ape_halo_wait(halo))
    call system_clock(finish)
    exchange_us = exchange_us + 1e6_c_double * real(finish - start, c_double) / real(rate, c_double)
    field(l+1, 1:l, 1:l) = in(:, :, APE_PLUS_X)
    field(0, 1:l, 1:l) = in(:, :, APE_MINUS_X)
    field(1:l, l+1, 1:l) = in(:, :, APE_PLUS_Y)
    field(1:l, 0, 1:l) = in(:, :, APE_MINUS_Y)
    field(1:l, 1:l, l+1) = in(:, :, APE_PLUS_Z)
    field(1:l, 1:l, 0) = in(:, :, APE_MINUS_Z)
    next = field(1:l, 1:l, 1:l) + 0.1_c_double * (field(2:l+1, 1:l, 1:l) + field(0:l-1, 1:l, 1:l) &
      + field(1:l, 2:l+1, 1:l) + field(1:l, 0:l-1, 1:l) + field(1:l, 1:l, 2:l+1) + field(1:l, 1:l, 0:l-1) &
      - 6 * field(1:l, 1:l, 1:l))
    field(1:l, 1:l, 1:l) = next
  end do

  action = sum(field(1:l, 1:l, 1:l)**2)
  call check(ape_sum(c_loc(action), 1_c_size_t, APE_DOUBLE))
  call check(ape_max(c_loc(exchange_us), 1_c_size_t, APE_DOUBLE))
  if (rank == 0) then
    print '(i0, a, i0, a, i0, a, i0)', ranks, ' ranks, a torus of ', dims(1), 'x', dims(2), 'x', dims(3)
    print '(a, f0.6)', 'sum of squares ', action
    print '(a, i0, a, f0.2, a)', 'one exchange of six faces of ', face_bytes, ' bytes: ', exchange_us / steps, ' us'
  end if
  call check(ape_halo_free(halo))
  call check(ape_finalize())

contains

  subroutine check(code)
    integer(c_int), intent(in) :: code
    if (code == APE_OK) return
    print '(2a)', 'halo: ', ape_last_error()
    error stop 1
  end subroutine

end program

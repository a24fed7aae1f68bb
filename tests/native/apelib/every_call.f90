! Every function of the module apelib on any number of ranks; prints "passed" at rank 0.
program every_call
  use, intrinsic :: iso_c_binding
  use apelib
  implicit none

  integer(c_int) :: rank, ranks, up, down, other, count, which, done, dims(APE_MAX_DIMS), here(APE_MAX_DIMS), d
  integer(c_size_t) :: received
  integer(ape_request) :: requests(2)
  integer(ape_halo) :: halo
  real(c_double), target :: out(3), in(3), faces_out(0:5), faces_in(0:5)
  real(c_float), target :: single
  integer(c_int64_t), target :: whole
  complex(c_double_complex), target :: phase
  integer(c_int), target :: mine
  integer(c_int), allocatable, target :: all(:)
  integer(c_int) :: directions(16), hops, wanted
  integer :: i

  call expect(ape_rank(rank), APE_ERR_STATE)
  if (len(ape_last_error()) == 0) error stop 2
  if (ape_strerror(APE_OK) /= 'no error') error stop 2
  call expect(ape_init(), APE_OK)
  call expect(ape_rank(rank), APE_OK)
  call expect(ape_size(ranks), APE_OK)
  call expect(ape_dims(count, dims), APE_OK)
  call expect(ape_coords(rank, here), APE_OK)
  call expect(ape_rank_at(here, other), APE_OK)
  if (other /= rank .or. product(dims) /= ranks .or. count < 3) error stop 3
  up = modulo(rank + 1, ranks)
  down = modulo(rank - 1, ranks)

  out = real(rank, c_double)
  call expect(ape_irecv(c_loc(in), 24_c_size_t, down, 1, APE_ZERO_COPY, requests(1)), APE_OK)
  call expect(ape_send(c_loc(out), 24_c_size_t, up, 1, APE_COPIED), APE_OK)
  call expect(ape_wait(requests(1), received), APE_OK)
  if (received /= 24 .or. any(nint(in) /= down) .or. requests(1) /= APE_NO_REQUEST) error stop 4
  call expect(ape_isend(c_loc(out), 24_c_size_t, up, 2, APE_AUTO, requests(1)), APE_OK)
  call expect(ape_recv(c_loc(in), 24_c_size_t, down, 2, APE_AUTO), APE_OK)
  done = 0
  do while (done == 0)
    call expect(ape_test(requests(1), done, received), APE_OK)
  end do
  call expect(ape_sendrecv(c_loc(out), 24_c_size_t, up, c_loc(in), 24_c_size_t, down, 0, APE_AUTO), APE_OK)
  do i = 1, 4
    call expect(ape_irecv(c_loc(in), 24_c_size_t, down, i, APE_AUTO, requests(1)), APE_OK)
    call expect(ape_isend(c_loc(out), 24_c_size_t, up, i, APE_AUTO, requests(2)), APE_OK)
    if (i == 1) call expect(ape_wait_all(2, requests), APE_OK)
    if (i == 2) then
      call expect(ape_wait_any(2, requests, which, received), APE_OK)
      if (which < 0 .or. which > 1) error stop 5
    end if
    done = 0
    do while (i == 3 .and. done == 0)
      call expect(ape_test_all(2, requests, done), APE_OK)
    end do
    which = -1
    do while (i == 4 .and. which < 0)
      call expect(ape_test_any(2, requests, which, received), APE_OK)
    end do
    call expect(ape_wait_all(2, requests), APE_OK)
  end do

  call expect(ape_barrier(), APE_OK)
  call expect(ape_broadcast(c_loc(out), 24_c_size_t, 0), APE_OK)
  if (any(nint(out) /= 0)) error stop 6
  single = 1
  call expect(ape_sum(c_loc(single), 1_c_size_t, APE_FLOAT), APE_OK)
  whole = -rank
  call expect(ape_min(c_loc(whole), 1_c_size_t, APE_INT64), APE_OK)
  phase = (1, 2)
  call expect(ape_sum(c_loc(phase), 1_c_size_t, APE_DOUBLE_COMPLEX), APE_OK)
  out = rank
  call expect(ape_max(c_loc(out), 3_c_size_t, APE_DOUBLE), APE_OK)
  if (nint(single) /= ranks .or. whole /= 1 - ranks .or. nint(aimag(phase)) /= 2 * ranks) error stop 7
  if (any(nint(out) /= ranks - 1)) error stop 8
  allocate (all(0:ranks - 1))
  mine = 10 * rank
  call expect(ape_gather(c_loc(mine), 4_c_size_t, c_loc(all), 0), APE_OK)
  if (rank == 0 .and. any(all /= [(10 * i, i = 0, ranks - 1)])) error stop 9

  call expect(ape_halo_create(halo), APE_OK)
  do d = APE_PLUS_X, APE_MINUS_Z
    faces_out(d) = 10 * rank + d
    call expect(ape_halo_face(halo, d, c_loc(faces_out(d)), c_loc(faces_in(d)), 8_c_size_t), APE_OK)
  end do
  call expect(ape_halo_start(halo), APE_OK)
  call expect(ape_halo_wait(halo), APE_OK)
  do d = APE_PLUS_X, APE_MINUS_Z
    call expect(ape_neighbor(d, other), APE_OK)
    if (nint(faces_in(d)) /= 10 * other + ieor(d, 1)) error stop 10
  end do
  call expect(ape_halo_start(halo), APE_OK)
  done = 0
  do while (done == 0)
    call expect(ape_halo_test(halo, done), APE_OK)
  end do
  call expect(ape_halo_free(halo), APE_OK)
  if (halo /= APE_NO_HALO) error stop 11

  wanted = ape_route_get(0, ranks - 1, 16, directions, hops)
  if (wanted /= APE_OK) then  ! in real time
    call expect(wanted, APE_ERR_UNSUPPORTED)
    hops = 1
    directions(1) = APE_PLUS_X
  end if
  if (ranks == 1) call expect(ape_route_add(0, 0, 1, directions), APE_ERR_ROUTE)
  if (ranks > 1) call expect(ape_route_add(0, ranks - 1, hops, directions), APE_OK)
  call expect(ape_route_apply(), wanted)
  call expect(ape_finalize(), APE_OK)
  call expect(ape_finalize(), APE_ERR_FINALIZED)
  if (rank == 0) print '(a)', 'passed'

contains

  subroutine expect(got, wanted)
    integer(c_int), intent(in) :: got, wanted
    if (got == wanted) return
    print '(4a)', 'got "', ape_strerror(got), '": ', ape_last_error()
    error stop 1
  end subroutine

end program

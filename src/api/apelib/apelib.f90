! apelib: the communication library of the APENet machines, for Fortran 2008. Each function is that of apelib.h with
! the same name and returns APE_OK or one of the codes. Buffers are passed by c_loc(), so they need the attribute
! target, and sizes are in bytes.
!
! Compile this file once with the compiler of the program; it needs nothing but libapelib.so.
module apelib
  use, intrinsic :: iso_c_binding, only: c_char, c_f_pointer, c_int, c_int64_t, c_ptr, c_size_t
  implicit none
  private

  integer(c_int), parameter, public :: APE_OK = 0, APE_ERR_STATE = 1, APE_ERR_FINALIZED = 2, &
    APE_ERR_ENVIRONMENT = 3, APE_ERR_ARGUMENT = 4, APE_ERR_RANK = 5, APE_ERR_DIRECTION = 6, &
    APE_ERR_COORDINATES = 7, APE_ERR_TAG = 8, APE_ERR_HOW = 9, APE_ERR_TYPE = 10, APE_ERR_OVERSIZE = 11, &
    APE_ERR_TRUNCATED = 12, APE_ERR_REQUEST = 13, APE_ERR_HALO = 14, APE_ERR_BUSY = 15, APE_ERR_IDLE = 16, &
    APE_ERR_MEMORY = 17, APE_ERR_NETWORK = 18, APE_ERR_ROUTE = 19, APE_ERR_DEADLOCK = 20, APE_ERR_UNSUPPORTED = 21
  integer(c_int), parameter, public :: APE_MAX_DIMS = 6
  integer(c_int), parameter, public :: APE_PLUS_X = 0, APE_MINUS_X = 1, APE_PLUS_Y = 2, APE_MINUS_Y = 3, &
    APE_PLUS_Z = 4, APE_MINUS_Z = 5
  integer(c_int), parameter, public :: APE_AUTO = 0, APE_ZERO_COPY = 1, APE_COPIED = 2
  integer(c_int), parameter, public :: APE_DOUBLE = 0, APE_FLOAT = 1, APE_INT64 = 2, APE_DOUBLE_COMPLEX = 3
  ! Kinds of requests and halos, and their empty values.
  integer, parameter, public :: ape_request = c_int64_t, ape_halo = c_int64_t
  integer(ape_request), parameter, public :: APE_NO_REQUEST = 0
  integer(ape_halo), parameter, public :: APE_NO_HALO = 0

  public :: ape_init, ape_finalize, ape_rank, ape_size, ape_dims, ape_coords, ape_rank_at, ape_neighbor
  public :: ape_send, ape_recv, ape_sendrecv, ape_isend, ape_irecv
  public :: ape_wait, ape_test, ape_wait_any, ape_test_any, ape_wait_all, ape_test_all
  public :: ape_barrier, ape_broadcast, ape_sum, ape_min, ape_max, ape_gather
  public :: ape_halo_create, ape_halo_face, ape_halo_start, ape_halo_wait, ape_halo_test, ape_halo_free
  public :: ape_route_get, ape_route_add, ape_route_apply
  public :: ape_strerror, ape_last_error

  interface
    integer(c_int) function ape_init() bind(c)
      import :: c_int
    end function
    integer(c_int) function ape_finalize() bind(c)
      import :: c_int
    end function
    integer(c_int) function ape_rank(rank) bind(c)
      import :: c_int
      integer(c_int), intent(out) :: rank
    end function
    integer(c_int) function ape_size(size) bind(c)
      import :: c_int
      integer(c_int), intent(out) :: size
    end function
    integer(c_int) function ape_dims(count, dims) bind(c)
      import :: c_int, APE_MAX_DIMS
      integer(c_int), intent(out) :: count
      integer(c_int), intent(out) :: dims(APE_MAX_DIMS)
    end function
    integer(c_int) function ape_coords(rank, coords) bind(c)
      import :: c_int, APE_MAX_DIMS
      integer(c_int), value :: rank
      integer(c_int), intent(out) :: coords(APE_MAX_DIMS)
    end function
    integer(c_int) function ape_rank_at(coords, rank) bind(c)
      import :: c_int, APE_MAX_DIMS
      integer(c_int), intent(in) :: coords(APE_MAX_DIMS)
      integer(c_int), intent(out) :: rank
    end function
    integer(c_int) function ape_neighbor(direction, rank) bind(c)
      import :: c_int
      integer(c_int), value :: direction
      integer(c_int), intent(out) :: rank
    end function
    integer(c_int) function ape_send(data, bytes, to, tag, how) bind(c)
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: data
      integer(c_size_t), value :: bytes
      integer(c_int), value :: to, tag, how
    end function
    integer(c_int) function ape_recv(data, bytes, from, tag, how) bind(c)
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: data
      integer(c_size_t), value :: bytes
      integer(c_int), value :: from, tag, how
    end function
    integer(c_int) function ape_sendrecv(out, out_bytes, to, in, in_bytes, from, tag, how) bind(c)
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: out, in
      integer(c_size_t), value :: out_bytes, in_bytes
      integer(c_int), value :: to, from, tag, how
    end function
    integer(c_int) function ape_isend(data, bytes, to, tag, how, request) bind(c)
      import :: c_int, c_ptr, c_size_t, ape_request
      type(c_ptr), value :: data
      integer(c_size_t), value :: bytes
      integer(c_int), value :: to, tag, how
      integer(ape_request), intent(out) :: request
    end function
    integer(c_int) function ape_irecv(data, bytes, from, tag, how, request) bind(c)
      import :: c_int, c_ptr, c_size_t, ape_request
      type(c_ptr), value :: data
      integer(c_size_t), value :: bytes
      integer(c_int), value :: from, tag, how
      integer(ape_request), intent(out) :: request
    end function
    integer(c_int) function ape_wait(request, received) bind(c)
      import :: c_int, c_size_t, ape_request
      integer(ape_request), intent(inout) :: request
      integer(c_size_t), intent(out) :: received
    end function
    integer(c_int) function ape_test(request, done, received) bind(c)
      import :: c_int, c_size_t, ape_request
      integer(ape_request), intent(inout) :: request
      integer(c_int), intent(out) :: done
      integer(c_size_t), intent(out) :: received
    end function
    ! `which` counts from 0, as in C.
    integer(c_int) function ape_wait_any(count, requests, which, received) bind(c)
      import :: c_int, c_size_t, ape_request
      integer(c_int), value :: count
      integer(ape_request), intent(inout) :: requests(*)
      integer(c_int), intent(out) :: which
      integer(c_size_t), intent(out) :: received
    end function
    integer(c_int) function ape_test_any(count, requests, which, received) bind(c)
      import :: c_int, c_size_t, ape_request
      integer(c_int), value :: count
      integer(ape_request), intent(inout) :: requests(*)
      integer(c_int), intent(out) :: which
      integer(c_size_t), intent(out) :: received
    end function
    integer(c_int) function ape_wait_all(count, requests) bind(c)
      import :: c_int, ape_request
      integer(c_int), value :: count
      integer(ape_request), intent(inout) :: requests(*)
    end function
    integer(c_int) function ape_test_all(count, requests, done) bind(c)
      import :: c_int, ape_request
      integer(c_int), value :: count
      integer(ape_request), intent(inout) :: requests(*)
      integer(c_int), intent(out) :: done
    end function
    integer(c_int) function ape_barrier() bind(c)
      import :: c_int
    end function
    integer(c_int) function ape_broadcast(data, bytes, root) bind(c)
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: data
      integer(c_size_t), value :: bytes
      integer(c_int), value :: root
    end function
    integer(c_int) function ape_sum(values, count, type) bind(c)
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: values
      integer(c_size_t), value :: count
      integer(c_int), value :: type
    end function
    integer(c_int) function ape_min(values, count, type) bind(c)
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: values
      integer(c_size_t), value :: count
      integer(c_int), value :: type
    end function
    integer(c_int) function ape_max(values, count, type) bind(c)
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: values
      integer(c_size_t), value :: count
      integer(c_int), value :: type
    end function
    integer(c_int) function ape_gather(mine, bytes, all, root) bind(c)
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: mine, all
      integer(c_size_t), value :: bytes
      integer(c_int), value :: root
    end function
    integer(c_int) function ape_route_get(from, to, room, directions, hops) bind(c)
      import :: c_int
      integer(c_int), value :: from, to, room
      integer(c_int), intent(inout) :: directions(*)
      integer(c_int), intent(out) :: hops
    end function
    integer(c_int) function ape_route_add(from, to, hops, directions) bind(c)
      import :: c_int
      integer(c_int), value :: from, to, hops
      integer(c_int), intent(in) :: directions(*)
    end function
    integer(c_int) function ape_route_apply() bind(c)
      import :: c_int
    end function
    integer(c_int) function ape_halo_create(halo) bind(c)
      import :: c_int, ape_halo
      integer(ape_halo), intent(out) :: halo
    end function
    integer(c_int) function ape_halo_face(halo, direction, out, in, bytes) bind(c)
      import :: c_int, c_ptr, c_size_t, ape_halo
      integer(ape_halo), value :: halo
      integer(c_int), value :: direction
      type(c_ptr), value :: out, in
      integer(c_size_t), value :: bytes
    end function
    integer(c_int) function ape_halo_start(halo) bind(c)
      import :: c_int, ape_halo
      integer(ape_halo), value :: halo
    end function
    integer(c_int) function ape_halo_wait(halo) bind(c)
      import :: c_int, ape_halo
      integer(ape_halo), value :: halo
    end function
    integer(c_int) function ape_halo_test(halo, done) bind(c)
      import :: c_int, ape_halo
      integer(ape_halo), value :: halo
      integer(c_int), intent(out) :: done
    end function
    integer(c_int) function ape_halo_free(halo) bind(c)
      import :: c_int, ape_halo
      integer(ape_halo), intent(inout) :: halo
    end function

    type(c_ptr) function c_strerror(code) bind(c, name='ape_strerror')
      import :: c_int, c_ptr
      integer(c_int), value :: code
    end function
    type(c_ptr) function c_last_error() bind(c, name='ape_last_error')
      import :: c_ptr
    end function
    integer(c_size_t) function c_strlen(text) bind(c, name='strlen')
      import :: c_ptr, c_size_t
      type(c_ptr), value :: text
    end function
  end interface

contains

  function ape_strerror(code) result(text)
    integer(c_int), intent(in) :: code
    character(:), allocatable :: text
    text = text_at(c_strerror(code))
  end function

  function ape_last_error() result(text)
    character(:), allocatable :: text
    text = text_at(c_last_error())
  end function

  function text_at(address) result(text)
    type(c_ptr), intent(in) :: address
    character(:), allocatable :: text
    character(kind=c_char), pointer :: letters(:)
    integer :: i
    call c_f_pointer(address, letters, [c_strlen(address)])
    allocate (character(size(letters)) :: text)
    do i = 1, size(letters)
      text(i:i) = letters(i)
    end do
  end function

end module

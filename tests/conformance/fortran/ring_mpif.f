C     Fixed form and mpif.h: a ring, a sum of the program's own, and a window.
      program ring
      implicit none
      include 'mpif.h'
      integer rank, n, ierr, i, got, op, win
      integer requests(2), indices(2), all(MPI_STATUS_SIZE,2)
      integer status(MPI_STATUS_SIZE)
      integer (kind=MPI_ADDRESS_KIND) bytes, disp
      double precision x(4), y(4), total, start
      character*(MPI_MAX_ERROR_STRING) text
      external largest
      call MPI_INIT(ierr)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, n, ierr)
      start = MPI_WTIME()
      do i = 1, 4
        x(i) = rank + i
      end do
      call MPI_IRECV(y, 4, MPI_DOUBLE_PRECISION, mod(rank+n-1, n), 3,
     &     MPI_COMM_WORLD, requests(1), ierr)
      call MPI_ISEND(x, 4, MPI_DOUBLE_PRECISION, mod(rank+1, n), 3,
     &     MPI_COMM_WORLD, requests(2), ierr)
      i = 0
      do while (i .lt. 2)
        call MPI_WAITSOME(2, requests, got, indices, all, ierr)
        if (indices(1) .lt. 1 .or. indices(got) .gt. 2) stop 1
        i = i + got
      end do
      call MPI_OP_CREATE(largest, .true., op, ierr)
      call MPI_ALLREDUCE(y(4), total, 1, MPI_DOUBLE_PRECISION, op,
     &     MPI_COMM_WORLD, ierr)
      call MPI_OP_FREE(op, ierr)
      bytes = 8
      call MPI_WIN_CREATE(y, bytes, 8, MPI_INFO_NULL, MPI_COMM_WORLD,
     &     win, ierr)
      call MPI_WIN_FENCE(0, win, ierr)
      disp = 0
      call MPI_PUT(total, 1, MPI_DOUBLE_PRECISION, mod(rank+1, n), disp,
     &     1, MPI_DOUBLE_PRECISION, win, ierr)
      call MPI_WIN_FENCE(0, win, ierr)
      call MPI_WIN_FREE(win, ierr)
      call MPI_COMM_SET_ERRHANDLER(MPI_COMM_WORLD, MPI_ERRORS_RETURN,
     &     ierr)
      call MPI_SEND(x, 4, MPI_DOUBLE_PRECISION, n, 3, MPI_COMM_WORLD,
     &     ierr)
      if (ierr .eq. MPI_SUCCESS) stop 2
      call MPI_ERROR_STRING(ierr, text, got, i)
      call MPI_SENDRECV(i, 1, MPI_INTEGER, rank, 1, got, 1, MPI_INTEGER,
     &     rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
      call MPI_PROBE(MPI_PROC_NULL, 1, MPI_COMM_WORLD, status, ierr)
      if (status(MPI_SOURCE) .ne. MPI_PROC_NULL) stop 3
      if (MPI_WTIME() .le. start) stop 4
      if (rank .eq. 0) print '(2F6.1,A,A)', total, y(1), ' ', text(:12)
      call MPI_FINALIZE(ierr)
      end

      subroutine largest(in, inout, length, datatype)
      implicit none
      integer length, datatype, i
      double precision in(length), inout(length)
      do i = 1, length
        inout(i) = max(in(i), inout(i))
      end do
      end

// The functions of qmp.h that concern memory and messages: each checks its arguments, and calls the library.
#include <cstdint>
#include <limits>
#include <set>
#include <string>

#include "api/qmp/failure.hpp"
#include "api/qmp/session.hpp"

namespace {

using namespace apenet::qmp;

QMP_msgmem_t declared(Job& job, const void* base, const Shape& shape) {
  require(base != nullptr || shape.bytes() == 0, QMP_BAD_MEMORY, "a null pointer");
  // The program's memory is written by receives alone.
  auto* const start = static_cast<std::byte*>(const_cast<void*>(base));
  auto made = std::make_unique<Memory>(Memory{start, std::make_shared<const Shape>(shape)});
  return reinterpret_cast<QMP_msgmem_t>(job.memories.add(std::move(made)));
}

void add_strided(Shape& shape, std::ptrdiff_t offset, std::size_t bytes, int blocks, std::ptrdiff_t stride) {
  require(blocks >= 0, QMP_INVALID_ARG, std::to_string(blocks) + " blocks: expected 0 or more");
  for (int block = 0; block < blocks; ++block) shape.add(offset + block * stride, bytes);
}

QMP_msghandle_t declared(Job& job, const Communicator& comm, Handle::Way way, QMP_msgmem_t memory, int node,
                         int channel) {
  const Memory& of = job.memories.find(memory, QMP_BAD_MEMORY);
  auto made = std::make_unique<Handle>(way, of, comm.rank_of(node), tag_of(comm, channel));
  return reinterpret_cast<QMP_msghandle_t>(job.handles.add(std::move(made)));
}

QMP_msghandle_t relative(std::string_view call, QMP_comm_t comm, Handle::Way way, QMP_msgmem_t memory,
                         int axis, int dir) {
  return value_call(call, QMP_msghandle_t{nullptr}, [&](Job& job) {
    const Communicator& of = job.communicator(comm);
    std::vector<int> at = of.coordinates();
    require(axis >= 0 && static_cast<std::size_t>(axis) < at.size(), QMP_INVALID_ARG,
            "axis " + std::to_string(axis) + ": expected 0 to " + std::to_string(at.size() - 1));
    require(dir == 1 || dir == -1, QMP_INVALID_ARG,
            "direction " + std::to_string(dir) + ": expected 1 or -1");
    at[static_cast<std::size_t>(axis)] += dir;
    const bool up = (dir > 0) == (way == Handle::Way::out);
    return declared(job, of, way, memory, of.node_at(at), relative_channel(axis, up));
  });
}

QMP_msghandle_t direct(std::string_view call, QMP_comm_t comm, Handle::Way way, QMP_msgmem_t memory,
                       int node) {
  return value_call(call, QMP_msghandle_t{nullptr}, [&](Job& job) {
    return declared(job, job.communicator(comm), way, memory, node, node_channel);
  });
}

QMP_msghandle_t several(std::string_view call, QMP_msghandle_t handles[], int count) {
  return value_call(call, QMP_msghandle_t{nullptr}, [&](Job& job) {
    require(count >= 0, QMP_INVALID_ARG, std::to_string(count) + " handles: expected 0 or more");
    require(handles != nullptr || count == 0, QMP_INVALID_ARG, "a null pointer");
    std::set<QMP_msghandle_t> once;
    for (int i = 0; i < count; ++i) {
      require(!job.handles.find(handles[i], QMP_BAD_MESSAGE).is_started(), QMP_INVALID_OP,
              "a message is in progress");
      require(once.insert(handles[i]).second, QMP_INVALID_ARG, "a handle stands twice");
    }
    std::vector<std::unique_ptr<Handle>> members;
    for (int i = 0; i < count; ++i) members.push_back(job.handles.take(handles[i], QMP_BAD_MESSAGE));
    return reinterpret_cast<QMP_msghandle_t>(job.handles.add(std::make_unique<Handle>(std::move(members))));
  });
}

}  // namespace

QMP_mem_t* QMP_allocate_memory(size_t nbytes) {
  return QMP_allocate_aligned_memory(nbytes, QMP_ALIGN_DEFAULT, QMP_MEM_DEFAULT);
}

QMP_mem_t* QMP_allocate_aligned_memory(size_t nbytes, size_t alignment, int /*flags*/) {
  return value_call("QMP_allocate_aligned_memory", static_cast<QMP_mem_t*>(nullptr), [&](Job& job) {
    require(alignment <= std::numeric_limits<std::size_t>::max() / 2 &&
                nbytes <= std::numeric_limits<std::size_t>::max() / 2 - alignment,
            QMP_MEMSIZE_TOOBIG, std::to_string(nbytes) + " bytes");
    auto made = std::make_unique<Allocation>();
    made->storage = std::make_unique_for_overwrite<std::byte[]>(nbytes + alignment);
    const auto start = reinterpret_cast<std::uintptr_t>(made->storage.get());
    const std::size_t beyond = alignment > 0 ? start % alignment : 0;
    made->aligned = made->storage.get() + (beyond > 0 ? alignment - beyond : 0);
    return reinterpret_cast<QMP_mem_t*>(job.allocations.add(std::move(made)));
  });
}

void* QMP_get_memory_pointer(QMP_mem_t* mem) {
  return value_call("QMP_get_memory_pointer", static_cast<void*>(nullptr),
                    [&](Job& job) { return job.allocations.find(mem, QMP_BAD_MEMORY).aligned; });
}

void QMP_free_memory(QMP_mem_t* mem) {
  if (mem == nullptr) return;
  status_call("QMP_free_memory", [&](Job& job) { job.allocations.take(mem, QMP_BAD_MEMORY); });
}

QMP_msgmem_t QMP_declare_msgmem(const void* mem, size_t nbytes) {
  return value_call("QMP_declare_msgmem", QMP_msgmem_t{nullptr}, [&](Job& job) {
    Shape shape;
    shape.add(0, nbytes);
    return declared(job, mem, shape);
  });
}

QMP_msgmem_t QMP_declare_strided_msgmem(void* base, size_t blksize, int nblocks, ptrdiff_t stride) {
  return value_call("QMP_declare_strided_msgmem", QMP_msgmem_t{nullptr}, [&](Job& job) {
    Shape shape;
    add_strided(shape, 0, blksize, nblocks, stride);
    return declared(job, base, shape);
  });
}

QMP_msgmem_t QMP_declare_strided_array_msgmem(void* base[], size_t blksize[], int nblocks[],
                                              ptrdiff_t stride[], int num) {
  return value_call("QMP_declare_strided_array_msgmem", QMP_msgmem_t{nullptr}, [&](Job& job) {
    require(num > 0, QMP_INVALID_ARG, std::to_string(num) + " parts: expected 1 or more");
    require(base != nullptr && blksize != nullptr && nblocks != nullptr && stride != nullptr, QMP_INVALID_ARG,
            "a null pointer");
    Shape shape;
    for (int part = 0; part < num; ++part) {
      require(base[part] != nullptr, QMP_BAD_MEMORY, "a null pointer");
      const auto offset = static_cast<std::ptrdiff_t>(reinterpret_cast<std::intptr_t>(base[part]) -
                                                      reinterpret_cast<std::intptr_t>(base[0]));
      add_strided(shape, offset, blksize[part], nblocks[part], stride[part]);
    }
    return declared(job, base[0], shape);
  });
}

QMP_msgmem_t QMP_declare_indexed_msgmem(void* base, int blocklen[], int index[], int elemsize, int count) {
  return value_call("QMP_declare_indexed_msgmem", QMP_msgmem_t{nullptr}, [&](Job& job) {
    require(count >= 0 && elemsize >= 0, QMP_INVALID_ARG,
            std::to_string(count) + " blocks of elements of " + std::to_string(elemsize) + " bytes");
    require(count == 0 || (blocklen != nullptr && index != nullptr), QMP_INVALID_ARG, "a null pointer");
    Shape shape;
    for (int block = 0; block < count; ++block) {
      require(blocklen[block] >= 0, QMP_INVALID_ARG,
              "a block of " + std::to_string(blocklen[block]) + " elements");
      shape.add(static_cast<std::ptrdiff_t>(index[block]) * elemsize,
                static_cast<std::size_t>(blocklen[block]) * static_cast<std::size_t>(elemsize));
    }
    return declared(job, base, shape);
  });
}

void QMP_free_msgmem(QMP_msgmem_t m) {
  if (m == nullptr) return;
  status_call("QMP_free_msgmem", [&](Job& job) { job.memories.take(m, QMP_BAD_MEMORY); });
}

QMP_msghandle_t QMP_declare_receive_relative(QMP_msgmem_t m, int axis, int dir, int priority) {
  return QMP_comm_declare_receive_relative(QMP_comm_get_default(), m, axis, dir, priority);
}

QMP_msghandle_t QMP_comm_declare_receive_relative(QMP_comm_t comm, QMP_msgmem_t m, int axis, int dir,
                                                  int /*priority*/) {
  return relative("QMP_declare_receive_relative", comm, Handle::Way::in, m, axis, dir);
}

QMP_msghandle_t QMP_declare_send_relative(QMP_msgmem_t m, int axis, int dir, int priority) {
  return QMP_comm_declare_send_relative(QMP_comm_get_default(), m, axis, dir, priority);
}

QMP_msghandle_t QMP_comm_declare_send_relative(QMP_comm_t comm, QMP_msgmem_t m, int axis, int dir,
                                               int /*priority*/) {
  return relative("QMP_declare_send_relative", comm, Handle::Way::out, m, axis, dir);
}

QMP_msghandle_t QMP_declare_send_to(QMP_msgmem_t m, int rem_node_rank, int priority) {
  return QMP_comm_declare_send_to(QMP_comm_get_default(), m, rem_node_rank, priority);
}

QMP_msghandle_t QMP_comm_declare_send_to(QMP_comm_t comm, QMP_msgmem_t m, int rem_node_rank,
                                         int /*priority*/) {
  return direct("QMP_declare_send_to", comm, Handle::Way::out, m, rem_node_rank);
}

QMP_msghandle_t QMP_declare_receive_from(QMP_msgmem_t m, int rem_node_rank, int priority) {
  return QMP_comm_declare_receive_from(QMP_comm_get_default(), m, rem_node_rank, priority);
}

QMP_msghandle_t QMP_comm_declare_receive_from(QMP_comm_t comm, QMP_msgmem_t m, int rem_node_rank,
                                              int /*priority*/) {
  return direct("QMP_declare_receive_from", comm, Handle::Way::in, m, rem_node_rank);
}

QMP_status_t QMP_change_address(QMP_msghandle_t msg, void* addr) {
  return status_call("QMP_change_address",
                     [&](Job& job) { job.handles.find(msg, QMP_BAD_MESSAGE).move_to(addr); });
}

QMP_status_t QMP_change_address_multiple(QMP_msghandle_t msg, void* addr[], int naddr) {
  return status_call("QMP_change_address_multiple", [&](Job& job) {
    require(naddr >= 0 && (addr != nullptr || naddr == 0), QMP_INVALID_ARG, "no addresses");
    job.handles.find(msg, QMP_BAD_MESSAGE).move_to(std::span(addr, static_cast<std::size_t>(naddr)));
  });
}

QMP_msghandle_t QMP_declare_multiple(QMP_msghandle_t msgh[], int num) {
  return several("QMP_declare_multiple", msgh, num);
}

QMP_msghandle_t QMP_declare_send_recv_pairs(QMP_msghandle_t msgh[], int num) {
  return several("QMP_declare_send_recv_pairs", msgh, num);
}

void QMP_free_msghandle(QMP_msghandle_t h) {
  if (h == nullptr) return;
  status_call("QMP_free_msghandle", [&](Job& job) {
    require(!job.handles.find(h, QMP_BAD_MESSAGE).is_started(), QMP_INVALID_OP, "the message is in progress");
    job.handles.take(h, QMP_BAD_MESSAGE);
  });
}

QMP_status_t QMP_clear_to_send(QMP_msghandle_t mh, QMP_clear_to_send_t cts) {
  return status_call("QMP_clear_to_send", [&](Job& job) {
    static_cast<void>(job.handles.find(mh, QMP_BAD_MESSAGE));
    require(cts >= QMP_CTS_DISABLED && cts <= QMP_CTS_READY, QMP_INVALID_ARG,
            "setting " + std::to_string(cts) + ": not one of QMP_clear_to_send_t");
  });
}

QMP_status_t QMP_start(QMP_msghandle_t h) {
  return status_call("QMP_start", [&](Job& job) { job.handles.find(h, QMP_BAD_MESSAGE).start(); });
}

QMP_status_t QMP_wait(QMP_msghandle_t h) {
  return status_call("QMP_wait", [&](Job& job) { job.handles.find(h, QMP_BAD_MESSAGE).wait(); });
}

QMP_status_t QMP_wait_all(QMP_msghandle_t h[], int num) {
  return status_call("QMP_wait_all", [&](Job& job) {
    require(num >= 0 && (h != nullptr || num == 0), QMP_INVALID_ARG, "no handles");
    for (int i = 0; i < num; ++i) static_cast<void>(job.handles.find(h[i], QMP_BAD_MESSAGE));
    for (int i = 0; i < num; ++i) job.handles.find(h[i], QMP_BAD_MESSAGE).wait();
  });
}

QMP_bool_t QMP_is_complete(QMP_msghandle_t h) {
  return value_call("QMP_is_complete", QMP_FALSE, [&](Job& job) {
    return job.handles.find(h, QMP_BAD_MESSAGE).is_complete() ? QMP_TRUE : QMP_FALSE;
  });
}

QMP_status_t QMP_get_error_number(QMP_msghandle_t mh) {
  if (mh == nullptr) return Session::instance().last_error();
  return value_call("QMP_get_error_number", QMP_BAD_MESSAGE,
                    [&](Job& job) { return job.handles.find(mh, QMP_BAD_MESSAGE).error(); });
}

const char* QMP_get_error_string(QMP_msghandle_t mh) {
  return QMP_error_string(QMP_get_error_number(mh));
}

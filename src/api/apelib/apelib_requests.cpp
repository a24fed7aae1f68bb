// The functions of apelib.h that begin an operation, and wait or test for it.
#include <span>
#include <vector>

#include "api/apelib/apelib.h"
#include "api/apelib/arguments.hpp"
#include "api/apelib/error.hpp"
#include "api/apelib/process.hpp"

using namespace apenet::apelib;

namespace {

Operation& checked_request(Library& library, std::string_view call, ape_request request) {
  Operation* found = library.requests().find(request);
  require(found != nullptr, APE_ERR_REQUEST, call,
          "not a request in progress: never begun, or already waited for");
  return *found;
}

// The requests of an array; nullptr for APE_NO_REQUEST. A number that stands twice is waited for twice.
std::vector<Operation*> checked_requests(Library& library, std::string_view call, int count,
                                         const ape_request* requests) {
  require(count >= 0, APE_ERR_ARGUMENT, call, "count " + number(count) + ": expected 0 or more");
  if (count > 0) require_memory(call, requests);
  std::vector<Operation*> operations;
  for (int i = 0; i < count; ++i) {
    const bool is_none = requests[i] == APE_NO_REQUEST;
    operations.push_back(is_none ? nullptr : &checked_request(library, call, requests[i]));
  }
  return operations;
}

// A request whose operation begin() has begun. A begin that throws leaves none.
template <typename Begin>
ape_request begun(Library& library, Begin begin) {
  const ape_request added = library.requests().add();
  try {
    begin(*library.requests().find(added));
  } catch (...) {
    library.requests().remove(added);
    throw;
  }
  return added;
}

// Ends a request whose operation is done, and returns its error.
ape_error end_request(Library& library, ape_request* request, std::size_t* received) {
  const Operation& operation = *library.requests().find(*request);
  const ape_error error = operation.error;
  if (received != nullptr) *received = operation.received;
  library.requests().remove(*request);
  *request = APE_NO_REQUEST;
  return error;
}

void throw_error(std::string_view call, ape_error error) {
  if (error != APE_OK) throw Error(error, std::string(call) + ": " + meaning_of(error));
}

// The first that is done, or -1.
int first_done(std::span<Operation* const> operations) {
  for (std::size_t i = 0; i < operations.size(); ++i) {
    if (operations[i] != nullptr && operations[i]->is_done) return static_cast<int>(i);
  }
  return -1;
}

bool all_done(std::span<Operation* const> operations) {
  for (const Operation* operation : operations) {
    if (operation != nullptr && !operation->is_done) return false;
  }
  return true;
}

bool any(std::span<Operation* const> operations) {
  for (const Operation* operation : operations) {
    if (operation != nullptr) return true;
  }
  return false;
}

// A number may stand twice in the array.
void end_all(Library& library, std::string_view call, std::span<ape_request> requests) {
  ape_error first = APE_OK;
  for (ape_request& request : requests) {
    if (library.requests().find(request) == nullptr) {
      request = APE_NO_REQUEST;
      continue;
    }
    const ape_error error = end_request(library, &request, nullptr);
    if (first == APE_OK) first = error;
  }
  throw_error(call, first);
}

void any_request(Library& library, std::string_view call, int count, ape_request* requests, int* which,
                 std::size_t* received, bool waits) {
  require_memory(call, which);
  const std::vector<Operation*> operations = checked_requests(library, call, count, requests);
  *which = -1;
  if (received != nullptr) *received = 0;
  if (!any(operations)) return;
  *which = first_done(operations);
  if (*which < 0) {
    if (waits) {
      library.transport().wait_until(call, [&] { return first_done(operations) >= 0; });
    } else {
      library.transport().poll();
    }
    *which = first_done(operations);
  }
  if (*which < 0) library.require_transport();
  if (*which < 0) return;
  throw_error(call, end_request(library, &requests[*which], received));
}

}  // namespace

int ape_isend(const void* data, size_t bytes, int to, int tag, int how, ape_request* request) {
  constexpr std::string_view call = "ape_isend";
  return entered(call, [&](Library& library) {
    require_memory(call, request);
    const std::uint32_t target = checked_rank(library, call, to);
    const std::uint64_t number = checked_tag(call, tag);
    const How mode = checked_how(call, how);
    const auto out = checked_out(library, call, data, bytes);
    *request = begun(library, [&](Operation& operation) {
      library.transport().send(operation, out, target, number, mode);
    });
  });
}

int ape_irecv(void* data, size_t bytes, int from, int tag, int how, ape_request* request) {
  constexpr std::string_view call = "ape_irecv";
  return entered(call, [&](Library& library) {
    require_memory(call, request);
    const std::uint32_t source = checked_rank(library, call, from);
    const std::uint64_t number = checked_tag(call, tag);
    const How mode = checked_how(call, how);
    const auto in = checked_in(library, call, data, bytes);
    *request = begun(library, [&](Operation& operation) {
      library.transport().receive(operation, in, source, number, mode);
    });
  });
}

int ape_wait(ape_request* request, size_t* received) {
  constexpr std::string_view call = "ape_wait";
  return entered(call, [&](Library& library) {
    require_memory(call, request);
    const Operation& operation = checked_request(library, call, *request);
    library.transport().wait_until(call, [&] { return operation.is_done; });
    if (!operation.is_done) library.require_transport();
    throw_error(call, end_request(library, request, received));
  });
}

int ape_test(ape_request* request, int* done, size_t* received) {
  constexpr std::string_view call = "ape_test";
  return entered(call, [&](Library& library) {
    require_memory(call, request, done);
    const Operation& operation = checked_request(library, call, *request);
    if (!operation.is_done) library.transport().poll();
    *done = operation.is_done ? 1 : 0;
    if (operation.is_done) throw_error(call, end_request(library, request, received));
  });
}

int ape_wait_any(int count, ape_request requests[], int* which, size_t* received) {
  return entered("ape_wait_any", [&](Library& library) {
    any_request(library, "ape_wait_any", count, requests, which, received, true);
  });
}

int ape_test_any(int count, ape_request requests[], int* which, size_t* received) {
  return entered("ape_test_any", [&](Library& library) {
    any_request(library, "ape_test_any", count, requests, which, received, false);
  });
}

int ape_wait_all(int count, ape_request requests[]) {
  constexpr std::string_view call = "ape_wait_all";
  return entered(call, [&](Library& library) {
    const std::vector<Operation*> operations = checked_requests(library, call, count, requests);
    library.transport().wait_until(call, [&] { return all_done(operations); });
    if (!all_done(operations)) library.require_transport();
    end_all(library, call, {requests, operations.size()});
  });
}

int ape_test_all(int count, ape_request requests[], int* done) {
  constexpr std::string_view call = "ape_test_all";
  return entered(call, [&](Library& library) {
    require_memory(call, done);
    const std::vector<Operation*> operations = checked_requests(library, call, count, requests);
    if (!all_done(operations)) library.transport().poll();
    *done = all_done(operations) ? 1 : 0;
    if (*done != 0) end_all(library, call, {requests, operations.size()});
  });
}

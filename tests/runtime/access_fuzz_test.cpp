// Remote accesses of a hostile rank to memory that others have opened by keys, or have not: random and
// targeted keys, addresses and lengths. The test decides on its own, in 128 bits, whether each is permitted.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "kernel/random.hpp"
#include "ranks.hpp"
#include "support/cases.hpp"

namespace apenet::test {
namespace {

constexpr std::uint64_t page_bytes = 4096;
constexpr std::uint32_t owner_rank = 0;
constexpr std::uint16_t other_endpoint = 7;
constexpr std::uint32_t other_domain = 1;

// The pages of each rank, at one address. The first and the last are never opened.
enum Page : std::uint64_t { closed, open_to_all, by_offset, read_only, closed_again, in_other_domain, last };
constexpr std::uint64_t pages = last + 1;
alignas(page_bytes) std::array<std::byte, pages * page_bytes> own_pages;

std::uint64_t address_of(std::uint64_t number) {
  return reinterpret_cast<std::uint64_t>(own_pages.data()) + number * page_bytes;
}

struct Opened {
  Page number;
  std::uint64_t key;
  std::uint64_t begin;
  std::uint32_t domain;
  std::uint32_t access;
};
constexpr std::uint32_t both = ipc::may_read | ipc::may_write;
constexpr std::uint64_t key_closed_again = 6;
constexpr std::uint64_t key_of_rank_2 = 9;
// What the owner has opened, and not closed again.
std::array<Opened, 4> opened_by_owner() {
  return {{{open_to_all, 3, address_of(open_to_all), 0, both},
           {by_offset, 4, 0, 0, both},
           {read_only, 5, address_of(read_only), 0, ipc::may_read},
           {in_other_domain, 8, address_of(in_other_domain), other_domain, both}}};
}

void fill_memory() {
  for (std::uint64_t i = 0; i < own_pages.size(); ++i)
    own_pages[i] = static_cast<std::byte>(i / page_bytes * 16 + i % 7);
}

void open_memory(ipc::Client& client, const Opened& opened) {
  client.regions().insert({.key = opened.key,
                           .address = address_of(opened.number),
                           .length = page_bytes,
                           .begin = opened.begin,
                           .domain = opened.domain,
                           .access = opened.access});
}

// A permitted access gives the page and the offset in it.
struct Verdict {
  ipc::AccessFault fault = ipc::AccessFault::unknown_key;
  std::uint64_t at = 0;  // in `own_pages`
};

Verdict judge(const ipc::Request& request) {
  const std::uint32_t domain = request.endpoint == other_endpoint ? other_domain : 0;
  for (const Opened& opened : opened_by_owner()) {
    if (opened.key != request.key || opened.domain != domain) continue;
    __extension__ using Wide = unsigned __int128;
    const Wide first = request.remote_address;
    const Wide behind = first + static_cast<Wide>(request.bytes);
    if (first < opened.begin || behind > Wide{opened.begin} + page_bytes)
      return {ipc::AccessFault::out_of_bounds};
    const bool is_get = request.verb == ipc::RequestVerb::get;
    if ((opened.access & (is_get ? ipc::may_read : ipc::may_write)) == 0)
      return {ipc::AccessFault::not_allowed};
    return {ipc::AccessFault::none, opened.number * page_bytes + (request.remote_address - opened.begin)};
  }
  return {};
}

template <typename Value, std::size_t count>
Value one_of(RandomStream& random, const std::array<Value, count>& values) {
  return values[random.below(count)];
}

ipc::Request draw(RandomStream& random) {
  ipc::Request request;
  request.verb = random.below(2) == 0 ? ipc::RequestVerb::put : ipc::RequestVerb::get;
  request.flags = ipc::by_key;
  if (request.verb == ipc::RequestVerb::put) request.flags |= ipc::want_remote;
  request.target = owner_rank;
  request.interface = static_cast<ipc::Interface>(random.below(ipc::interface_count));
  const std::array<std::uint64_t, 9> keys = {
      3, 4, 5, 8, key_closed_again, key_of_rank_2, 0, ~0ULL, random.below(12)};
  request.key = one_of(random, keys);
  const std::array<std::uint16_t, 5> endpoints = {0, 0, other_endpoint, 1, 65535};
  request.endpoint = one_of(random, endpoints);
  const std::array<std::int64_t, 9> sizes = {
      0, 1, 8, 4095, 4096, 4097, 8192, std::int64_t{1} << 36, static_cast<std::int64_t>(random.below(5000))};
  request.bytes = one_of(random, sizes);
  const auto bytes = static_cast<std::uint64_t>(request.bytes);
  // Around the borders of each page, and of the address space: additions of these wrap around.
  const std::uint64_t begin = random.below(4) == 0 ? 0 : address_of(random.below(pages));
  const std::array<std::uint64_t, 12> offsets = {0,
                                                 1,
                                                 ~0ULL,
                                                 page_bytes,
                                                 page_bytes - 1,
                                                 page_bytes - bytes,
                                                 page_bytes - bytes + 1,
                                                 0 - bytes,
                                                 1ULL << 62U,
                                                 1ULL << 63U,
                                                 ~0ULL - bytes,
                                                 random.below(2 * page_bytes)};
  request.remote_address = begin + one_of(random, offsets);
  return request;
}

constexpr int accesses = 600;
constexpr std::byte put_byte{0xab};

[[noreturn]] void complain(std::uint64_t seed, int number, const ipc::Request& request, const char* what) {
  std::printf("seed %llu, access %d: %s (verb %d, key %llu, endpoint %u, address %llx, %lld bytes)\n",
              static_cast<unsigned long long>(seed), number, what, static_cast<int>(request.verb),
              static_cast<unsigned long long>(request.key), request.endpoint,
              static_cast<unsigned long long>(request.remote_address), static_cast<long long>(request.bytes));
  std::fflush(stdout);
  _exit(9);
}

RankProgram hostile(std::uint64_t seed) {
  return [seed](ipc::Client& client) {
    receive_word(client);
    receive_word(client);
    fill_memory();  // what the owner's is expected to be
    RandomStream random(seed, 3);
    std::array<std::byte, 2 * page_bytes> local{};
    for (int i = 0; i < accesses; ++i) {
      ipc::Request request = draw(random);
      const bool is_get = request.verb == ipc::RequestVerb::get;
      local.fill(is_get ? std::byte{0xcd} : put_byte);
      request.local_address = reinterpret_cast<std::uint64_t>(local.data());
      const Verdict verdict = judge(request);
      client.post(request);
      const ipc::Event event = await(client, is_get ? ipc::EventKind::got : ipc::EventKind::remote_done);
      if (event.fault != verdict.fault) complain(seed, i, request, "another verdict");
      const auto bytes = static_cast<std::ptrdiff_t>(request.bytes);
      const bool is_done = verdict.fault == ipc::AccessFault::none;
      const auto at = own_pages.begin() + static_cast<std::ptrdiff_t>(verdict.at);
      if (is_done && !is_get) std::fill_n(at, bytes, put_byte);
      const auto changed = is_get && is_done ? local.begin() + bytes : local.begin();
      if (!std::equal(local.begin(), changed, at)) complain(seed, i, request, "other bytes");
      if (std::any_of(changed, local.end(),
                      [&](std::byte one) { return one != (is_get ? std::byte{0xcd} : put_byte); }))
        complain(seed, i, request, "bytes beyond the access");
    }
    send_word(client, 0, 1);
    send_word(client, 2, 1);
    leave(client);
  };
}

// The pages that nobody may write are as they were.
void check_memory(std::initializer_list<Page> untouched) {
  for (const Page number : untouched) {
    for (std::uint64_t i = number * page_bytes; i < (number + 1) * page_bytes; ++i) {
      if (own_pages[i] != static_cast<std::byte>(i / page_bytes * 16 + i % 7)) {
        std::printf("page %d was written\n", static_cast<int>(number));
        std::fflush(stdout);
        _exit(9);
      }
    }
  }
}

void own(ipc::Client& client) {
  fill_memory();
  client.regions().set_domain(other_endpoint, other_domain);
  open_memory(client, {closed_again, key_closed_again, address_of(closed_again), 0, both});
  for (const Opened& opened : opened_by_owner()) open_memory(client, opened);
  client.regions().erase(0, key_closed_again);
  send_word(client, 1, 1);
  receive_word(client);
  check_memory({closed, read_only, closed_again, last});
  leave(client);
}

// Opens other memory than the owner, by a key of its own.
void own_another(ipc::Client& client) {
  fill_memory();
  open_memory(client, {closed, key_of_rank_2, address_of(closed), 0, both});
  send_word(client, 1, 1);
  receive_word(client);
  check_memory({closed, open_to_all, by_offset, read_only, closed_again, in_other_domain, last});
  leave(client);
}

TEST(AccessFuzz, EachAccessIsJudgedByItsKeyItsDomainAndItsBounds) {
  for (std::uint64_t seed = 1; seed <= drawn_cases(20); ++seed) {
    const Ran ran = run_ranks(test::round_ideal(), {own, hostile(seed), own_another});
    ASSERT_EQ(ran.report.outcome, SessionReport::Outcome::completed) << ran.report.message << ran.output;
  }
}

std::string warning_of(ipc::Request request) {
  const auto asks = [request](ipc::Client& client) mutable {
    receive_word(client);
    receive_word(client);
    request.local_address = address_of(closed);
    client.post(request);
    const bool is_get = request.verb == ipc::RequestVerb::get;
    await(client, is_get ? ipc::EventKind::got : ipc::EventKind::remote_done);
    send_word(client, 0, 1);
    send_word(client, 2, 1);
    leave(client);
  };
  const Ran ran = run_ranks(test::round_ideal(), {own, asks, own_another});
  for (const std::string& warning : ran.report.warnings) {
    if (warning.find("puts or gets failed") != std::string::npos) return warning;
  }
  return "no warning: " + ran.report.message;
}

TEST(AccessFuzz, TheWarningNamesRankRegionAndPlace) {
  ipc::Request request;
  request.verb = ipc::RequestVerb::put;
  request.flags = ipc::by_key | ipc::want_remote;
  request.target = owner_rank;
  request.bytes = 64;
  request.key = 3;
  request.remote_address = address_of(open_to_all) + (1ULL << 62U);
  const std::string head =
      "1 puts or gets failed: the target process has not mapped that memory, or has not opened it to them; "
      "the "
      "first was of rank 1, ";
  EXPECT_EQ(warning_of(request), head +
                                     "a put of 64 bytes to rank 0, from byte 4611686018427387904 of a region "
                                     "of 4096 bytes, key 3");
  request.remote_address = address_of(open_to_all) - 1;
  EXPECT_EQ(warning_of(request),
            head + "a put of 64 bytes to rank 0, from byte -1 of a region of 4096 bytes, key 3");
  request.key = 5;
  EXPECT_EQ(warning_of(request).find(head + "a put of 64 bytes to rank 0, from byte "), 0U);
  request.remote_address = address_of(read_only);
  EXPECT_EQ(warning_of(request),
            head + "a put of 64 bytes to rank 0, whose region with key 5 does not permit it");
  request.verb = ipc::RequestVerb::get;
  request.flags = ipc::by_key;
  request.key = key_closed_again;
  EXPECT_EQ(warning_of(request), head + "a get of 64 bytes from rank 0, which has no region with key 6");
}

}  // namespace
}  // namespace apenet::test

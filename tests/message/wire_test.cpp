#include "message/wire.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace apenet::message {
namespace {

std::span<const std::byte> bytes_of(const auto& object) {
  return std::as_bytes(std::span{&object, 1});
}

TEST(Wire, HeaderIsUnchangedByEncodingAndDecoding) {
  MessageHeader header;
  header.kind = MessageKind::ready_tagged;
  header.sequence = 0xdeadbeef;
  header.tag = 0x0123456789abcdefULL;
  header.data = 77;
  header.source_endpoint = 3;
  const MessageHeader decoded = decode_header(bytes_of(header));
  EXPECT_EQ(decoded.kind, MessageKind::ready_tagged);
  EXPECT_EQ(decoded.sequence, 0xdeadbeef);
  EXPECT_EQ(decoded.tag, 0x0123456789abcdefULL);
  EXPECT_EQ(decoded.data, 77U);
  EXPECT_EQ(decoded.source_endpoint, 3U);
}

TEST(Wire, ShortOrUnknownHeadersAreMalformed) {
  MessageHeader header;
  for (std::size_t length = 0; length < sizeof(header); ++length) {
    EXPECT_THROW(static_cast<void>(decode_header(bytes_of(header).first(length))), MalformedMessage);
  }
  for (const int kind : {0, 10, 255}) {
    header.kind = static_cast<MessageKind>(kind);
    EXPECT_THROW(static_cast<void>(decode_header(bytes_of(header))), MalformedMessage);
  }
}

TEST(Wire, ClearHasAsManyBytesAsItsSegmentsNeed) {
  ClearBody body;
  for (std::uint32_t count = 0; count <= segment_limit; ++count) {
    body.segment_count = count;
    const auto bytes = bytes_of(body);
    EXPECT_EQ(decode_clear(bytes.first(clear_bytes(count))).segment_count, count);
    for (std::size_t length = 0; length <= bytes.size(); ++length) {
      if (length == clear_bytes(count)) continue;
      EXPECT_THROW(static_cast<void>(decode_clear(bytes.first(length))), MalformedMessage);
    }
  }
  body.segment_count = segment_limit + 1;
  EXPECT_THROW(static_cast<void>(decode_clear(bytes_of(body))), MalformedMessage);
}

TEST(Wire, NoticesAreUnchangedByEncodingAndDecoding) {
  for (const auto kind :
       {PutNoticeKind::rendezvous, PutNoticeKind::remote_data, PutNoticeKind::remote_write}) {
    const PutNotice notice = PutNotice::decode(PutNotice{kind, 0xfffe, 0x80000001}.encode());
    EXPECT_EQ(notice.kind, kind);
    EXPECT_EQ(notice.endpoint, 0xfffeU);
    EXPECT_EQ(notice.value, 0x80000001U);
  }
  EXPECT_THROW(static_cast<void>(PutNotice::decode(0)), MalformedMessage);
  EXPECT_THROW(static_cast<void>(PutNotice::decode(std::uint64_t{4} << 56)), MalformedMessage);
}

TEST(Wire, RandomBytesAreDecodedOrRefused) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::byte> bytes(random() % 100);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() % 8);
    try {
      static_cast<void>(decode_header(bytes));
    } catch (const MalformedMessage&) {
    }
    try {
      EXPECT_LE(decode_clear(bytes).segment_count, segment_limit);
    } catch (const MalformedMessage&) {
    }
    try {
      static_cast<void>(decode_ready(bytes));
    } catch (const MalformedMessage&) {
    }
  }
}

}  // namespace
}  // namespace apenet::message

#include "ip/capture.hpp"

#include <cerrno>
#include <cstring>

#include "kernel/refuse.hpp"

namespace apenet::ip {
namespace {

// draft-ietf-opsawg-pcapng, section 4; LINKTYPE_IPV4 of tcpdump.org's list: packets begin with the IP header.
constexpr std::uint32_t section_header = 0x0a0d0d0a;
constexpr std::uint32_t interface_description = 1;
constexpr std::uint32_t name_resolution = 4;
constexpr std::uint32_t enhanced_packet = 6;
constexpr std::uint32_t byte_order = 0x1a2b3c4d;
constexpr std::uint16_t linktype_ipv4 = 228;
constexpr std::uint16_t name_of_ipv4 = 1;
constexpr std::uint16_t if_name = 2;
constexpr std::uint16_t if_tsresol = 9;
constexpr std::uint16_t shb_userappl = 4;
constexpr std::uint16_t epb_flags = 2;
constexpr std::int64_t ps_per_ns = 1000;
constexpr std::int64_t ns_per_s = 1'000'000'000;

// A block of the file. Numbers have the order of this host, which the section's header tells.
class Block {
 public:
  explicit Block(std::uint32_t type) {
    add(type);
    add(std::uint32_t{0});  // the length, known at the end
  }
  template <typename Number>
  void add(Number number) {
    add(std::as_bytes(std::span(&number, 1)));
  }
  void add(std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  void align() { bytes_.resize((bytes_.size() + 3) / 4 * 4); }
  // An option, or a record of names.
  void add_record(std::uint16_t type, std::span<const std::byte> value) {
    add(type);
    add(static_cast<std::uint16_t>(value.size()));
    add(value);
    align();
  }
  void end_records() { add(std::uint32_t{0}); }

  std::vector<std::byte> finish() {
    const auto length = static_cast<std::uint32_t>(bytes_.size() + sizeof(std::uint32_t));
    std::memcpy(bytes_.data() + sizeof(std::uint32_t), &length, sizeof length);
    add(length);
    return std::move(bytes_);
  }

 private:
  std::vector<std::byte> bytes_;
};

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

}  // namespace

PacketCapture::PacketCapture(const std::string& path, const std::vector<Interface>& interfaces,
                             std::int64_t date_s)
    : file_(std::fopen(path.c_str(), "we")), date_s_(date_s) {
  if (file_ == nullptr)
    refuse_value("pcap", path, std::string("a file that can be written (") + std::strerror(errno) + ")");
  // The Python side recognises by this block a file that it may overwrite.
  Block section(section_header);
  section.add(byte_order);
  section.add(std::uint16_t{1});  // version 1.0
  section.add(std::uint16_t{0});
  section.add(std::int64_t{-1});  // the length of the section is not given
  section.add_record(shb_userappl, bytes_of("apenet"));
  section.end_records();
  write(section.finish());
  Block names(name_resolution);
  for (const Interface& one : interfaces) {
    Block description(interface_description);
    description.add(linktype_ipv4);
    description.add(std::uint16_t{0});
    description.add(std::uint32_t{0});  // packets are whole
    description.add_record(if_name, bytes_of(one.host_name));
    constexpr std::byte nanoseconds{9};
    description.add_record(if_tsresol, std::span(&nanoseconds, 1));
    description.end_records();
    write(description.finish());
    std::string record;
    for (int shift = 24; shift >= 0; shift -= 8) record += static_cast<char>(one.address >> shift & 0xffU);
    record += one.host_name;
    record += '\0';
    names.add_record(name_of_ipv4, bytes_of(record));
  }
  names.end_records();
  write(names.finish());
}

PacketCapture::~PacketCapture() {
  finish();
}

void PacketCapture::see(std::uint32_t interface, Direction direction, Time at, Time now,
                        std::span<const std::byte> packet) {
  write_until(now);
  const std::int64_t ns = date_s_ * ns_per_s + at.ps() / ps_per_ns;
  const auto bytes = static_cast<std::uint32_t>(packet.size());
  Block block(enhanced_packet);
  block.add(interface);
  block.add(static_cast<std::uint32_t>(static_cast<std::uint64_t>(ns) >> 32U));
  block.add(static_cast<std::uint32_t>(ns));
  block.add(bytes);
  block.add(bytes);
  block.add(packet);
  block.align();
  const auto flags = static_cast<std::uint32_t>(direction);
  block.add_record(epb_flags, std::as_bytes(std::span(&flags, 1)));
  block.end_records();
  seen_.push({at, next_number_++, block.finish()});
}

void PacketCapture::finish() {
  if (is_finished_) return;
  is_finished_ = true;
  write_until(Time::never());
  // A file without this block, which names nobody, is not complete.
  Block end(name_resolution);
  end.end_records();
  write(end.finish());
  std::fflush(file_.get());
}

// Whether it is whole is seen by its end.
void PacketCapture::write(const std::vector<std::byte>& block) {
  std::fwrite(block.data(), 1, block.size(), file_.get());
}

void PacketCapture::write_until(Time time) {
  for (; !seen_.empty() && seen_.top().at < time; seen_.pop()) write(seen_.top().block);
}

}  // namespace apenet::ip

#include "network/flit/timing.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernel/refuse.hpp"

namespace apenet {

namespace {

// Longer delays would need rings of lists larger than the network.
constexpr std::int64_t max_delay_cycles = 1 << 16;

std::string in_cycles(std::int64_t count, Time time) {
  return std::to_string(count) + (count == 1 ? " cycle, " : " cycles, ") + std::to_string(time.ps()) + " ps";
}

// The duration of a flit is measured over 10^6 flits, so that DataRate's rounding to a picosecond does not
// matter.
constexpr std::int64_t many = 1'000'000;

std::int64_t cycles_of_flit(const FlitTiming& timing, const DataRate& rate) {
  const Time span = rate.duration(many * timing.flit_bytes);
  return std::max<std::int64_t>(1, (timing.cycle_from(span) + many - 1) / many);
}

// The ratio of a flit's duration in whole cycles to the described one.
double slowdown(const FlitTiming& timing, const DataRate& rate) {
  return static_cast<double>(timing.time(cycles_of_flit(timing, rate) * many).ps()) /
         static_cast<double>(rate.duration(many * timing.flit_bytes).ps());
}

double slowdown(const NetworkDescription& description, const DataRate& rate) {
  FlitTiming timing;
  timing.clock.frequency_hz = description.pipeline.clock_hz;
  timing.flit_bytes = static_cast<std::uint32_t>(flit_bytes_of(description));
  return timing.clock.frequency_hz <= 0 ? 1 : slowdown(timing, rate);
}

std::string in_hundredths(double value) {
  const std::int64_t hundredths = std::llround(100 * value);
  const std::string digits = std::to_string(hundredths % 100);
  return std::to_string(hundredths / 100) + "." + (digits.size() < 2 ? "0" : "") + digits;
}

class Rounding {
 public:
  explicit Rounding(FlitTiming& timing) : timing_(timing) {}

  std::uint32_t cycles(const std::string& key, Time time) {
    const std::int64_t count = timing_.cycle_from(time);
    if (count > max_delay_cycles) {
      refuse_value(
          key, std::to_string(time.ps()) + " ps",
          "at most " + std::to_string(max_delay_cycles) + " cycles of router.clock for the flit engine");
    }
    note(key, time, count);
    return static_cast<std::uint32_t>(count);
  }

  FlitLinkTiming link(const std::string& key, const DataRate& rate, Time latency) {
    FlitLinkTiming link;
    link.latency_cycles = cycles(key + ".latency", latency);
    const std::int64_t count = cycles_of_flit(timing_, rate);
    if (count > max_delay_cycles) {
      refuse_value(key + ".rate", std::to_string(rate.bytes),
                   "a flit in at most 65536 cycles of router.clock");
    }
    if (timing_.time(count * many) != rate.duration(many * timing_.flit_bytes)) {
      timing_.rounded.push_back(key + ".rate: a flit of " + std::to_string(timing_.flit_bytes) +
                                " bytes every " + in_cycles(count, timing_.time(count)) + ", instead of " +
                                std::to_string(rate.duration(timing_.flit_bytes).ps()) +
                                " ps: " + in_hundredths(slowdown(timing_, rate)) + " times as long");
    }
    link.flit_cycles = static_cast<std::uint32_t>(count);
    return link;
  }

 private:
  void note(const std::string& key, Time time, std::int64_t count) {
    if (timing_.time(count) == time) return;
    timing_.rounded.push_back(key + " = " + std::to_string(time.ps()) + " ps becomes " +
                              in_cycles(count, timing_.time(count)));
  }

  FlitTiming& timing_;
};

std::uint32_t require_delay(const std::string& key, std::uint32_t value, std::uint32_t least) {
  if (value < least || value > max_delay_cycles) {
    refuse_value(key, std::to_string(value), std::to_string(least) + " to 65536 cycles");
  }
  return value;
}

void set_pipeline(FlitTiming& timing, const NetworkDescription& description, Rounding& rounding) {
  const RouterPipeline& pipeline = description.pipeline;
  timing.routing_cycles = require_delay("router.routing_delay_cycles", pipeline.routing_delay_cycles, 0);
  timing.vc_allocation_cycles =
      require_delay("router.vc_allocation_delay_cycles", pipeline.vc_allocation_delay_cycles, 1);
  timing.switch_allocation_cycles =
      require_delay("router.switch_allocation_delay_cycles", pipeline.switch_allocation_delay_cycles, 1);
  timing.switch_traversal_cycles =
      require_delay("router.switch_traversal_delay_cycles", pipeline.switch_traversal_delay_cycles, 1);
  const std::uint32_t stages = timing.routing_cycles + timing.vc_allocation_cycles +
                               timing.switch_allocation_cycles + timing.switch_traversal_cycles;
  const std::uint32_t latency = rounding.cycles("router.latency", description.router_latency);
  if (latency < stages) {
    refuse_value(
        "router.latency", std::to_string(description.router_latency.ps()) + " ps",
        "at least the " + std::to_string(stages) + " cycles of the router's stages for the flit engine");
  }
  timing.buffer_write_cycles = latency - stages;
}

// Computes the credit delay: the description's credit latency (from the tail leaving the buffer until its
// credit can be used), plus the switch traversal, minus the time on the wires. Uses the fastest wire, so that
// no credit can be used earlier than described.
void set_credit(FlitTiming& timing, const NetworkDescription& description, Rounding& rounding) {
  const std::uint32_t delay = description.pipeline.credit_delay_cycles;
  if (delay != RouterPipeline::from_latency) {
    timing.credit_cycles = require_delay("router.credit_delay_cycles", delay, 0);
    return;
  }
  std::uint32_t wires = timing.local.latency_cycles;
  if (!timing.links.empty()) wires = std::numeric_limits<std::uint32_t>::max();
  for (const FlitLinkTiming& link : timing.links) wires = std::min(wires, link.latency_cycles);
  const std::uint32_t asked =
      rounding.cycles("router.credit_latency", description.credit_latency) + timing.switch_traversal_cycles;
  if (asked >= wires) {
    timing.credit_cycles = asked - wires;
    return;
  }
  timing.rounded.push_back("router.credit_latency = " + std::to_string(description.credit_latency.ps()) +
                           " ps is less than the latency of the link, which a credit takes");
}

}  // namespace

std::int64_t FlitTiming::cycle_from(Time time) const {
  if (time <= Time::zero()) return 0;
  __extension__ using Wide = __int128;
  return static_cast<std::int64_t>(static_cast<Wide>(time.ps() - 1) * clock.frequency_hz / ps_per_second) + 1;
}

std::int64_t flit_bytes_of(const NetworkDescription& description) {
  if (description.pipeline.flit_bytes != 0) return description.pipeline.flit_bytes;
  return description.links.empty() ? description.local_rate.bytes : description.links.front().rate.bytes;
}

double flit_slowdown(const NetworkDescription& description) {
  if (description.links.empty()) return flit_port_slowdown(description);
  double most = 1;
  for (const LinkDescription& link : description.links)
    most = std::max(most, slowdown(description, link.rate));
  return most;
}

double flit_port_slowdown(const NetworkDescription& description) {
  return slowdown(description, description.local_rate);
}

FlitTiming make_flit_clock(const NetworkDescription& description) {
  FlitTiming timing;
  timing.clock.frequency_hz = description.pipeline.clock_hz;
  if (timing.clock.frequency_hz <= 0 || timing.clock.frequency_hz > ps_per_second) {
    refuse_value("router.clock", std::to_string(timing.clock.frequency_hz) + " Hz",
                 "1 Hz to 1 THz: a cycle of the flit engine");
  }
  const std::int64_t flit_bytes = flit_bytes_of(description);
  constexpr std::int64_t max_flit_bytes = 1 << 16;
  if (flit_bytes < 1 || flit_bytes > max_flit_bytes) {
    refuse_value("router.flit_bytes", std::to_string(flit_bytes), "1 to 65536 bytes");
  }
  timing.flit_bytes = static_cast<std::uint32_t>(flit_bytes);

  Rounding rounding(timing);
  const std::vector<LinkDescription>& links = description.links;
  const bool are_equal = std::all_of(links.begin(), links.end(), [&](const LinkDescription& link) {
    return link.rate == links[0].rate && link.latency == links[0].latency;
  });
  for (std::size_t d = 0; d < links.size(); ++d) {
    if (are_equal && d > 0) {  // one message covers all links
      timing.links.push_back(timing.links[0]);
      continue;
    }
    const std::string key = are_equal ? "network.link" : "network.links[" + std::to_string(d) + "]";
    timing.links.push_back(rounding.link(key, links[d].rate, links[d].latency));
  }
  timing.local = rounding.link("router.local", description.local_rate, description.local_latency);
  return timing;
}

FlitTiming make_flit_timing(const NetworkParameters& parameters) {
  const NetworkDescription& description = parameters.description;
  FlitTiming timing = make_flit_clock(description);
  Rounding rounding(timing);
  set_pipeline(timing, description, rounding);
  set_credit(timing, description, rounding);

  const std::int64_t buffer_flits = description.buffer_bytes / timing.flit_bytes;
  const std::uint32_t packet_flits = timing.flits(parameters.max_packet_wire_bytes);
  constexpr std::int64_t max_buffer_flits = 65535;  // counted in 16 bits
  const bool is_wormhole = description.switching == NetworkDescription::Switching::wormhole;
  if (buffer_flits < (is_wormhole ? 1 : packet_flits) || buffer_flits > max_buffer_flits) {
    refuse_value(
        "router.buffer_bytes", std::to_string(description.buffer_bytes),
        (is_wormhole ? "1 to 65535 flits of "
                     : "the largest packet, " + std::to_string(packet_flits) + " flits, to 65535 flits of ") +
            std::to_string(timing.flit_bytes) + " bytes for the flit engine");
  }
  timing.buffer_flits = static_cast<std::uint32_t>(buffer_flits);
  return timing;
}

}  // namespace apenet

#include "nic/card_set.hpp"

#include <optional>
#include <utility>

#include "kernel/refuse.hpp"
#include "nic/same_node.hpp"
#include "schema/lowering.hpp"
#include "schema/ranges.hpp"

namespace apenet {

namespace {

// visit(Description) for every card of the type list.
template <std::size_t index = 0, typename Visit>
void for_each_card(const Visit& visit) {
  if constexpr (index < std::variant_size_v<NicDescription>) {
    visit(std::variant_alternative_t<index, NicDescription>{});
    for_each_card<index + 1>(visit);
  }
}

}  // namespace

std::vector<CardSection> card_sections() {
  std::vector<CardSection> sections;
  for_each_card([&sections]<typename Description>(const Description&) {
    schema::Section section = schema::listed<Description>("card");
    for (const schema::Section& shared :
         {schema::listed<InterruptDescription>("card"), schema::listed<SameNodeDescription>("card")}) {
      section.fields.insert(section.fields.end(), shared.fields.begin(), shared.fields.end());
    }
    sections.push_back({Description::kind, std::move(section)});
  });
  return sections;
}

NicDescription read_card(schema::Values& values) {
  std::string kind;
  schema::Lowering reader(values, "card", false);
  reader("kind", kind, schema::ranges::text, "");
  std::optional<NicDescription> found;
  std::string known;
  for_each_card([&]<typename Description>(Description description) {
    known += (known.empty() ? "'" : ", '") + std::string(Description::kind.name) + "'";
    if (kind != Description::kind.name) return;
    schema::lower(values, "card", description);
    found = std::move(description);
  });
  if (!found) refuse_value("card.kind", '"' + kind + '"', "one of " + known);
  return *found;
}

const CardKind& kind_of(const NicDescription& card) {
  return std::visit([](const auto& description) -> const CardKind& { return description.kind; }, card);
}

void read_base_units(const NicDescription& card, schema::BaseValues& values) {
  values.insert_or_assign("card.kind", std::string(kind_of(card).name));
  std::visit([&](const auto& description) { schema::read("card", description, values); }, card);
}

void validate_card(const NicDescription& card, const HostDescription& host) {
  const CardKind& kind = kind_of(card);
  if (kind.has_network && kind.has_bus) validate(host.bus);
  std::visit(
      [&](const auto& description) {
        schema::require_ranges("card", description);
        validate(description);
      },
      card);
}

CardTraits card_traits(const NicDescription& card, const HostDescription& host) {
  return std::visit([&](const auto& description) { return traits_of(description, host); }, card);
}

std::unique_ptr<CardSet> make_cards(const NicDescription& card, const CardSurroundings& surroundings) {
  return std::visit([&](const auto& description) { return make_set(description, surroundings); }, card);
}

}  // namespace apenet

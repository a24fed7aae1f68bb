# apenet_write_card_list(HEADER card...): the header that includes nic/<card>/description.hpp and lists
# <card>::Description for each card. A card's folder and its namespace have one name.
set(card_list_template ${CMAKE_CURRENT_LIST_DIR}/description.hpp.in)
function(apenet_write_card_list header)
  list(TRANSFORM ARGN REPLACE "(.+)" "#include \"nic/\\1/description.hpp\"\n" OUTPUT_VARIABLE includes)
  list(JOIN includes "" includes)
  list(TRANSFORM ARGN APPEND "::Description" OUTPUT_VARIABLE types)
  list(JOIN types ", " types)
  configure_file(${card_list_template} ${header} @ONLY)
endfunction()

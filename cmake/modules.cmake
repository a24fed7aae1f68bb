# A module under src/ is one target and links only what src/modules.json says. tests/tidy also checks the includes.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()
# Line tables for backtraces and profilers; full debug information would take a quarter longer to compile.
string(REPLACE "-g " "-g1 " CMAKE_C_FLAGS_RELWITHDEBINFO "${CMAKE_C_FLAGS_RELWITHDEBINFO}")
string(REPLACE "-g " "-g1 " CMAKE_CXX_FLAGS_RELWITHDEBINFO "${CMAKE_CXX_FLAGS_RELWITHDEBINFO}")

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  foreach(language C CXX)
    if(NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER)
      set(CMAKE_${language}_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
    endif()
  endforeach()
endif()

add_library(apenet_flags INTERFACE)
# Results are the same on every processor: compilers would fuse multiplications and additions where it can do so at once, and
# char is signed or not by processor.
target_compile_options(apenet_flags INTERFACE -ffp-contract=off -fsigned-char)
target_compile_options(apenet_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Wold-style-cast>
  # The braces of a base or a member, which gcc lets generic code leave out.
  $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-missing-braces>)
if(APENET_WERROR)
  target_compile_options(apenet_flags INTERFACE -Werror)
endif()
if(APENET_SANITIZE)
  # Directories add to these options (src/CMakeLists.txt).
  add_compile_options(-fsanitize=${APENET_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${APENET_SANITIZE})
  if(APENET_SANITIZE MATCHES address)
    # Checks are calls instead of inlined code: a fifth of the compile time.
    add_compile_options(--param=asan-instrumentation-with-call-threshold=0)
  endif()
  if(APENET_SANITIZE MATCHES undefined AND NOT APENET_ALL_CHECKS)
    # Half of the compile time. A null pointer that is read or written stops the program without this check, too, and
    # the address sanitizer reports an access beyond an object. Processors of this kind need no alignment.
    add_compile_options(-fno-sanitize=null,vptr,object-size,alignment,pointer-overflow)
  endif()
endif()

# For builds that compile everything once, as the package's and the sanitizers' are: 40 % less CPU time, but one changed
# file costs a batch.
option(APENET_UNITY "Compile a module's files as few large ones; names in their anonymous namespaces must differ" OFF)
if(APENET_UNITY)
  # A class in a .cpp file may have members of types that only this file knows; here gcc takes the file for a header.
  target_compile_options(apenet_flags INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endif()
set(CMAKE_UNITY_BUILD_BATCH_SIZE 16)
if(APENET_SANITIZE)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 0)  # one file for each module: headers are compiled once
endif()

# A library hides what it takes from archives. zig's linker has no such option, and needs none but for the archive of its
# C++ library, in which new and delete are visible: those would be the whole program's.
include(CheckLinkerFlag)
check_linker_flag(CXX -Wl,--exclude-libs,ALL APENET_LINKER_EXCLUDES_LIBS)
if(APENET_LINKER_EXCLUDES_LIBS)
  set(APENET_HIDE_ARCHIVES -Wl,--exclude-libs,ALL)
else()
  add_link_options($<$<IN_LIST:$<TARGET_PROPERTY:TYPE>,SHARED_LIBRARY$<SEMICOLON>MODULE_LIBRARY>:-Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/no_operators.map>)
endif()

# apenet_tune(option file...): an option that makes these files faster, and a compilation of their own. Only optimised
# builds have both.
function(apenet_tune option)
  if(CMAKE_BUILD_TYPE MATCHES "^Rel")
    set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS ${option})
  endif()
endfunction()

# apenet_optimise_less(): for a folder whose code mostly waits, for the simulator or for its ranks: a fifth of the compile time.
function(apenet_optimise_less)
  if(CMAKE_BUILD_TYPE MATCHES "^Rel")
    add_compile_options(-O1)
  endif()
endfunction()

# What src/modules.json says of each module: its targets that link which others.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/modules.json)
file(READ ${PROJECT_SOURCE_DIR}/src/modules.json APENET_MODULES)
# apenet_links(result name): the links of module apenet_<name>.
function(apenet_links result name)
  string(JSON count LENGTH "${APENET_MODULES}" src)
  math(EXPR last "${count} - 1")
  foreach(i RANGE ${last})
    string(JSON module GET "${APENET_MODULES}" src ${i} module)
    get_filename_component(target ${module} NAME)
    if(target STREQUAL name)
      set(links "")
      string(JSON link_count LENGTH "${APENET_MODULES}" src ${i} links)
      foreach(j RANGE ${link_count})
        if(j LESS link_count)
          string(JSON link GET "${APENET_MODULES}" src ${i} links ${j})
          get_filename_component(link ${link} NAME)
          list(APPEND links apenet_${link})
        endif()
      endforeach()
      set(${result} ${links} PARENT_SCOPE)
      return()
    endif()
  endforeach()
  message(FATAL_ERROR "src/modules.json: expected an entry for module ${name}")
endfunction()

# apenet_add_modules(folder): the folders of the modules that src/modules.json lists right below it.
function(apenet_add_modules folder)
  string(JSON count LENGTH "${APENET_MODULES}" src)
  math(EXPR last "${count} - 1")
  foreach(i RANGE ${last})
    string(JSON module GET "${APENET_MODULES}" src ${i} module)
    if(module MATCHES "^${folder}/([^/]+)$")
      add_subdirectory(${CMAKE_MATCH_1})
    endif()
  endforeach()
endfunction()

# apenet_module(name SOURCES file...): static library apenet_<name>, includes relative to src/. It links what
# src/modules.json says. With APENET_TAKES_BUILT, another build's path, the library is empty and links the one of that build.
function(apenet_module name)
  cmake_parse_arguments(MODULE "" "" "SOURCES" ${ARGN})
  apenet_links(links ${name})
  if(APENET_TAKES_BUILT)
    file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
    add_library(apenet_${name}_built STATIC IMPORTED GLOBAL)
    set_target_properties(apenet_${name}_built PROPERTIES
      IMPORTED_LOCATION ${APENET_TAKES_BUILT}/${folder}/libapenet_${name}.a)
    target_link_libraries(apenet_${name}_built INTERFACE ${links})
    list(PREPEND links apenet_${name}_built)
    file(CONFIGURE OUTPUT nothing.cpp CONTENT "")
    set(MODULE_SOURCES ${CMAKE_CURRENT_BINARY_DIR}/nothing.cpp)
  endif()
  add_library(apenet_${name} STATIC ${MODULE_SOURCES})
  target_include_directories(apenet_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(apenet_${name} PRIVATE apenet_flags)
  set_target_properties(apenet_${name} PROPERTIES UNITY_BUILD ${APENET_UNITY})
  target_link_libraries(apenet_${name} PUBLIC ${links})
endfunction()

# apenet_public_library(name FILE file SUMMARY text [DEFINES macro] SOURCES file... HEADERS file...): a
# library that programs link, lib<file>.so, with its headers and its pkg-config file. SOURCES hold its C edge; the rest of
# it is the module apenet_<name>, which tests link, too. Headers mark what they declare as visible. DEFINES: what they must
# find defined.
function(apenet_public_library name)
  cmake_parse_arguments(LIB "" "FILE;SUMMARY;DEFINES" "SOURCES;HEADERS" ${ARGN})
  add_library(apenet_${name}_shared SHARED ${LIB_SOURCES})
  set_target_properties(apenet_${name}_shared PROPERTIES OUTPUT_NAME ${LIB_FILE} UNITY_BUILD ${APENET_UNITY})
  target_include_directories(apenet_${name}_shared PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(apenet_${name}_shared PRIVATE apenet_flags apenet_${name})
  target_link_options(apenet_${name}_shared PRIVATE ${APENET_HIDE_ARCHIVES} -static-libstdc++ -static-libgcc)
  if(NOT APENET_SANITIZE)
    target_link_options(apenet_${name}_shared PRIVATE -Wl,-z,defs)
  endif()
  set(PACKAGE_NAME ${LIB_FILE})
  set(PACKAGE_SUMMARY ${LIB_SUMMARY})
  set(PACKAGE_DEFINITIONS "")
  if(LIB_DEFINES)
    set(PACKAGE_DEFINITIONS " -D${LIB_DEFINES}")
  endif()
  configure_file(${PROJECT_SOURCE_DIR}/cmake/package.pc.in ${CMAKE_CURRENT_BINARY_DIR}/${LIB_FILE}.pc @ONLY)
  install(TARGETS apenet_${name}_shared LIBRARY DESTINATION apenet/lib COMPONENT apenet)
  install(FILES ${LIB_HEADERS} DESTINATION apenet/include COMPONENT apenet)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${LIB_FILE}.pc DESTINATION apenet/lib/pkgconfig COMPONENT apenet)
endfunction()

# apenet_test(name [READS_OTHERS_BYTES|BY_NIGHT] SOURCES file... IMPORTS module... ENVIRONMENT variable...): a GoogleTest program, includes relative to src/ and tests/. ctest knows
# the program by its name, label `program`, and each case by its own, label `case`: `make test` runs the programs, because
# to start a process for each case takes longer than most cases. Compiling the cases takes longer than running them: they
# are not optimised, and several files are compiled as one (half the time), so names in the anonymous namespaces of a
# program's files must differ. The undefined-behaviour sanitizer checks the modules: in the cases themselves it would take a
# third of their compile time. The target cpp_tests is all test programs; day_tests, with the label `day`, those that
# `make test` runs of this build: READS_OTHERS_BYTES under the sanitizers, the others without (src/CMakeLists.txt), none that
# is BY_NIGHT.
include(GoogleTest)
add_custom_target(cpp_tests)
add_custom_target(day_tests)
function(apenet_test name)
  cmake_parse_arguments(TEST "READS_OTHERS_BYTES;BY_NIGHT" "" "SOURCES;IMPORTS;ENVIRONMENT" ${ARGN})
  add_executable(${name} ${TEST_SOURCES})
  target_link_libraries(${name} PRIVATE apenet_flags GTest::gtest GTest::gtest_main)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_options(${name} PRIVATE -O0)
  if(APENET_SANITIZE MATCHES undefined)
    target_compile_options(${name} PRIVATE -fno-sanitize=undefined)
  endif()
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON)
  foreach(import ${TEST_IMPORTS})
    target_link_libraries(${name} PRIVATE apenet_${import})
  endforeach()
  # Signals, limits and environment do not depend on what starts the tests.
  set(launcher ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/support/inherited_state.py)
  add_test(NAME ${name} COMMAND ${launcher} $<TARGET_FILE:${name}>)
  # A log that is cut still shows what failed. The longest takes two minutes on a busy host: what takes half an hour
  # will never end.
  set(labels program)
  if((TEST_READS_OTHERS_BYTES AND APENET_SANITIZE) OR NOT (TEST_READS_OTHERS_BYTES OR TEST_BY_NIGHT OR APENET_SANITIZE))
    list(APPEND labels day)
    add_dependencies(day_tests ${name})
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT 1800 ENVIRONMENT "GTEST_BRIEF=1;${TEST_ENVIRONMENT}")
  set_target_properties(${name} PROPERTIES CROSSCOMPILING_EMULATOR "${launcher}")
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 600 PROPERTIES LABELS case ENVIRONMENT "${TEST_ENVIRONMENT}")
  add_dependencies(cpp_tests ${name})
endfunction()

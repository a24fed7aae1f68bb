# Builds the TCP/IP stack of src/ip/stack with cargo, and sets APENET_IP_STACK to its archive; empty where that cannot be.
set(APENET_IP_STACK "")
set(APENET_HAS_IP_STACK OFF CACHE INTERNAL "for the tests")
set(ip_stack_source ${PROJECT_SOURCE_DIR}/src/ip/stack)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  ${ip_stack_source}/stack.rs ${ip_stack_source}/page_allocator.rs ${ip_stack_source}/Cargo.toml ${ip_stack_source}/Cargo.lock)
option(APENET_IP "Build the TCP/IP stack for `apenet run --ip`, which needs cargo" ON)
# cargo builds for the host's processor. Rust's library asks for newer functions of the C library only when it runs, so the
# archive is also for the older systems of cmake/zig.cmake.
if(APENET_IP AND CMAKE_SYSTEM_PROCESSOR STREQUAL CMAKE_HOST_SYSTEM_PROCESSOR)
  find_program(CARGO_PROGRAM cargo HINTS $ENV{CARGO_HOME}/bin $ENV{HOME}/.cargo/bin)
  if(CARGO_PROGRAM)
    set(ip_stack_folder ${CMAKE_CURRENT_BINARY_DIR}/cargo)
    if(APENET_BUILT_MODULES)  # that build has compiled it
      set(ip_stack_folder ${APENET_BUILT_MODULES}/src/ip/cargo)
    endif()
    execute_process(
      COMMAND ${CMAKE_COMMAND} -E env CARGO_TARGET_DIR=${ip_stack_folder}
              ${CARGO_PROGRAM} build --release --locked --quiet --manifest-path ${ip_stack_source}/Cargo.toml
      RESULT_VARIABLE ip_stack_result ERROR_VARIABLE ip_stack_errors
      TIMEOUT 600)  # seconds, where the package of smoltcp cannot be reached
    if(ip_stack_result EQUAL 0)
      set(APENET_HAS_IP_STACK ON CACHE INTERNAL "for the tests")
      set(APENET_IP_STACK ${ip_stack_folder}/release/libapenet_ip_stack.a)
    else()
      string(REGEX REPLACE "\n.*" "" ip_stack_errors "${ip_stack_errors}")
      message(STATUS "No TCP/IP stack (apenet run --ip): cargo cannot build it: ${ip_stack_errors}")
    endif()
  else()
    message(STATUS "No TCP/IP stack (apenet run --ip): cargo was not found; install Rust 1.85 or later")
  endif()
endif()

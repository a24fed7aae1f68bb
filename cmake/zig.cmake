# Toolchain of the package for older systems: zig's compilers (clang, of the Python package ziglang) bring the headers and
# the symbols of each version of glibc.
#   APENET_GLIBC       the oldest version with which the package runs
#   APENET_PROCESSOR   x86_64 or aarch64
if(NOT DEFINED APENET_GLIBC)
  set(APENET_GLIBC 2.28)
endif()
if(NOT DEFINED APENET_PROCESSOR)
  set(APENET_PROCESSOR x86_64)
endif()
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES APENET_GLIBC APENET_PROCESSOR)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${APENET_PROCESSOR})
find_program(ZIG zig REQUIRED)
# zig_tool(name arguments): a program of its own for each, because CMake runs compilers by name.
function(zig_tool name arguments)
  set(tool ${CMAKE_BINARY_DIR}/zig/${name})
  file(WRITE ${tool} "#!/bin/sh\nexec '${ZIG}' ${arguments} \"$@\"\n")
  file(CHMOD ${tool} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
endfunction()
# The host's headers of libfabric, and what Debian's headers of Python need; none of the host's C library.
find_path(HOST_INCLUDE rdma/providers/fi_prov.h PATHS /usr/include REQUIRED)
file(GLOB hosts_headers RELATIVE ${HOST_INCLUDE} ${HOST_INCLUDE}/rdma ${HOST_INCLUDE}/*-linux-gnu/python3*)
foreach(header ${hosts_headers})
  get_filename_component(folder ${CMAKE_BINARY_DIR}/zig/include/${header} DIRECTORY)
  file(MAKE_DIRECTORY ${folder})
  file(CREATE_LINK ${HOST_INCLUDE}/${header} ${CMAKE_BINARY_DIR}/zig/include/${header} SYMBOLIC)
endforeach()
set(LIBFABRIC_INCLUDE ${CMAKE_BINARY_DIR}/zig/include CACHE PATH "Headers of libfabric")
set(target "-target ${APENET_PROCESSOR}-linux-gnu.${APENET_GLIBC} -idirafter ${CMAKE_BINARY_DIR}/zig/include")
# Without debug information: that of zig's own C++ library is larger than the libraries.
zig_tool(cc "cc ${target} -Wl,-s")
zig_tool(c++ "c++ ${target} -Wl,-s")
zig_tool(ar ar)
zig_tool(ranlib ranlib)
set(CMAKE_C_COMPILER ${CMAKE_BINARY_DIR}/zig/cc)
set(CMAKE_CXX_COMPILER ${CMAKE_BINARY_DIR}/zig/c++)
set(CMAKE_AR ${CMAKE_BINARY_DIR}/zig/ar)
set(CMAKE_RANLIB ${CMAKE_BINARY_DIR}/zig/ranlib)
# Threads are cancelled by the unwinder of libgcc_s.so.1, which calls back into the frames' own functions: these must use the
# same one, not that of zig's C++ library. The linker needs a library that has its names.
set(unwinder ${CMAKE_BINARY_DIR}/zig/libgcc_s.so.1)
set(names "")
foreach(name Backtrace DeleteException FindEnclosingFunction ForcedUnwind GetCFA GetDataRelBase GetGR GetIP GetIPInfo
        GetLanguageSpecificData GetRegionStart GetTextRelBase RaiseException Resume Resume_or_Rethrow SetGR SetIP)
  string(APPEND names "void _Unwind_${name}(void) {}\n")
endforeach()
file(WRITE ${CMAKE_BINARY_DIR}/zig/unwinder.c "${names}")
execute_process(
  COMMAND ${CMAKE_BINARY_DIR}/zig/cc -shared -nostdlib -Wl,-soname,libgcc_s.so.1 -o ${unwinder} ${CMAKE_BINARY_DIR}/zig/unwinder.c
  COMMAND_ERROR_IS_FATAL ANY)
foreach(kind SHARED MODULE EXE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT ${unwinder})
endforeach()

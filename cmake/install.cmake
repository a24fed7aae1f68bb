# What the wheel contains beside the Python sources: the module, the libraries that ranks load, machine files, and
# the programs that `apenet bench` compiles with the MPI that it finds.
install(TARGETS _core LIBRARY DESTINATION apenet COMPONENT apenet)
foreach(library apenet_shim apenet_provider apenet_compute)
  if(TARGET ${library})
    install(TARGETS ${library} LIBRARY DESTINATION apenet/lib COMPONENT apenet)
  endif()
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/machines DESTINATION apenet COMPONENT apenet FILES_MATCHING PATTERN "*.toml")
if(EXISTS ${PROJECT_SOURCE_DIR}/bench/mpi)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/bench/mpi DESTINATION apenet/programs COMPONENT apenet
    FILES_MATCHING PATTERN "*.c" PATTERN "*.h")
endif()

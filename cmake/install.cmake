# The wheel's contents besides the Python sources: the module, the libraries that ranks load, machine files, examples, and the
# programs that `apenet bench` and `apenet perf` compile with the installed MPI.
install(TARGETS _core LIBRARY DESTINATION apenet COMPONENT apenet)
install(TARGETS apenet_shim apenet_provider apenet_cuda apenet_launcher_names LIBRARY DESTINATION apenet/lib COMPONENT apenet)
install(TARGETS apenet_mpich_name LIBRARY DESTINATION apenet/lib/mpich NAMELINK_SKIP COMPONENT apenet)
install(TARGETS apenet_supervisor RUNTIME DESTINATION apenet/lib COMPONENT apenet)
install(FILES ${PROJECT_SOURCE_DIR}/src/api/compute/apenet_compute.h ${PROJECT_SOURCE_DIR}/src/api/gpu/apenet_gpu.h
  DESTINATION apenet/include COMPONENT apenet)
install(FILES ${PROJECT_SOURCE_DIR}/src/api/gpu/cuda/cuda_runtime.h ${PROJECT_SOURCE_DIR}/src/api/gpu/cuda/cuda_runtime_api.h
  DESTINATION apenet/include/cuda COMPONENT apenet)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples DESTINATION apenet COMPONENT apenet PATTERN "__pycache__" EXCLUDE)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/machines DESTINATION apenet COMPONENT apenet FILES_MATCHING PATTERN "*.toml")
install(FILES ${PROJECT_SOURCE_DIR}/src/network/packet/accuracy_envelope.csv DESTINATION apenet COMPONENT apenet)
install(FILES ${PROJECT_SOURCE_DIR}/bench/mpi/apenet_bench.c ${PROJECT_SOURCE_DIR}/bench/mpi/fan_out.c
  ${PROJECT_SOURCE_DIR}/bench/mpi/message_rate.c
  DESTINATION apenet/programs COMPONENT apenet)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/bench/layers ${PROJECT_SOURCE_DIR}/bench/lqcd
  ${PROJECT_SOURCE_DIR}/bench/randomaccess
  DESTINATION apenet/programs COMPONENT apenet)

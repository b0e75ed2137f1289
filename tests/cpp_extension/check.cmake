# Builds the sample against the installed package, as a stranger would, and runs it each way that a plug-in can come in.
#   cmake -DBUILD_DIR=... -DSOURCE_DIR=... -DWORK_DIR=... -DCXX_FLAGS=... -P check.cmake
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGN}\nended with ${result}:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

function(expect pattern)
  if(NOT output MATCHES "${pattern}")
    message(FATAL_ERROR "not \"${pattern}\" in: ${output}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK_DIR})
run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/prefix)
run(${CMAKE_COMMAND} -S ${SOURCE_DIR} -B ${WORK_DIR}/build -DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix
    -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_FLAGS=${CXX_FLAGS}")
run(${CMAKE_COMMAND} --build ${WORK_DIR}/build)

set(bin ${WORK_DIR}/prefix/bin)
set(plugin ${WORK_DIR}/build/librelay_backend.so)
set(demo ${WORK_DIR}/build/relay_demo)
run(${CMAKE_COMMAND} -E env TP_BACKEND_PLUGINS=${plugin} ${bin}/tprun --nproc-per-node=3 ${demo})
expect("cpu:relay sum: tensor\\(\\[6, 6, 6\\]\\)")
run(${bin}/tprun --nproc-per-node=2 ${demo} relay ${plugin})
expect("cpu:relay sum: tensor\\(\\[3, 3, 3\\]\\)")
run(${bin}/tpbackends ${plugin})
expect("relay CPU")
run(${CMAKE_COMMAND} -E env TP_DISTRIBUTED_DEBUG=DETAIL TP_BACKEND_PLUGINS=${plugin} ${bin}/tprun --nproc-per-node=2
    ${demo} cpu:relay)
expect("cpu:relay sum: tensor\\(\\[3, 3, 3\\]\\)")

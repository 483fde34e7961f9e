# Run by ctest with BUILD_DIR, SCRATCH, CONSUMER, PHOTO, BINDIR, GENERATOR, COMPILER, FLAGS, VERSION and IMAGE_MODULE.
function(check what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${what} failed (${status}):\n${said}")
  endif()
  set(said "${said}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${SCRATCH})
check("cmake --install" ${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${SCRATCH}/first)
# What is installed must not depend on where it was installed to.
file(RENAME ${SCRATCH}/first ${SCRATCH}/moved)

check("Configuring the consumer" ${CMAKE_COMMAND} -S ${CONSUMER} -B ${SCRATCH}/build -G ${GENERATOR}
      -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_CXX_FLAGS=${FLAGS} -DCMAKE_PREFIX_PATH=${SCRATCH}/moved
      -DOMNICONV_WANTED=${VERSION})
check("Building the consumer" ${CMAKE_COMMAND} --build ${SCRATCH}/build)
check("The consumer" ${SCRATCH}/build/consumer)
if(NOT said STREQUAL "0 10 20 30\n")
  message(FATAL_ERROR "The consumer printed '${said}'")
endif()

set(command ${SCRATCH}/moved/${BINDIR}/omniconv)
check("omniconv --version" ${command} --version)
if(NOT said MATCHES "${VERSION}")
  message(FATAL_ERROR "The installed command calls itself '${said}', not ${VERSION}")
endif()
if(IMAGE_MODULE)
  check("omniconv filter, with the installed image module" ${command} filter ${PHOTO} ${SCRATCH}/out.png --kernel sharpen
        --device cpu)
  if(NOT EXISTS ${SCRATCH}/out.png)
    message(FATAL_ERROR "The installed command said that it was done, but wrote no ${SCRATCH}/out.png")
  endif()
endif()

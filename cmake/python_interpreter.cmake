# python_interpreter.cmake: which interpreter the Python package is built for, and whether it is supported.

# A build folder remembers the headers, libraries and module suffix of its interpreter. They are forgotten if the
# interpreter at that path is another one now, e.g. because an environment was created again.
if(Python_EXECUTABLE)
    execute_process(COMMAND "${Python_EXECUTABLE}" -c
                            "import sys, sysconfig; print(sys.version, sys.base_prefix, sysconfig.get_config_var('EXT_SUFFIX'))"
                    OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE interpreter ERROR_QUIET)
    string(MD5 interpreter "${interpreter}")
    if(MAREY_INTERPRETER AND NOT MAREY_INTERPRETER STREQUAL interpreter)
        message(STATUS "marey: the interpreter has changed: its settings are read again")
        get_cmake_property(names CACHE_VARIABLES)
        foreach(name IN LISTS names)
            if(name MATCHES "^(_?Python_|FIND_PACKAGE_MESSAGE_DETAILS_Python|NB_|nanobind_|SKBUILD_|MAREY_NVTX_DIR)" AND
               NOT name STREQUAL "Python_EXECUTABLE")
                unset(${name} CACHE)
            endif()
        endforeach()
        file(GLOB modules "${PROJECT_BINARY_DIR}/python/marey/_marey.*.so")
        if(modules)
            file(REMOVE ${modules})
        endif()
    endif()
    set(MAREY_INTERPRETER "${interpreter}" CACHE INTERNAL "A hash of the interpreter's version, place and module suffix")
endif()

find_package(Python REQUIRED COMPONENTS Interpreter)
execute_process(COMMAND "${Python_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/tools/supported_python.py"
                RESULT_VARIABLE is_unsupported ERROR_VARIABLE objection OUTPUT_QUIET ERROR_STRIP_TRAILING_WHITESPACE)
if(is_unsupported)
    message(FATAL_ERROR "${objection}")
endif()

# python_package.cmake: the Python package: its extension, where its files go, its tests.
#
# build/<preset>/python/marey is laid out as an installed package is, so that PYTHONPATH=build/<preset>/python runs it in
# place: marey/_marey.*.so, marey/*.py (links), marey/bin/marey (a link), marey/lib/cmake/marey. marey_pytest, the plugin
# for pytest, lies beside it.
find_package(Python REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir OUTPUT_STRIP_TRAILING_WHITESPACE
                OUTPUT_VARIABLE nanobind_dir RESULT_VARIABLE no_nanobind ERROR_QUIET)
if(no_nanobind)
    message(FATAL_ERROR "marey: the Python package needs nanobind: ${Python_EXECUTABLE} -m pip install nanobind")
endif()
set(nanobind_DIR "${nanobind_dir}" CACHE PATH "That of Python_EXECUTABLE" FORCE)
find_package(nanobind CONFIG REQUIRED)

marey_room_files(bindings "" binding_sources)
marey_room_files(sources/python "" python_sources)
marey_room_files(sources/torch "" torch_sources)  # except the observer, which is compiled against the user's PyTorch
file(GLOB python_c_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/sources/python/*.c")  # for the interpreter's headers
nanobind_add_module(marey_python NB_STATIC NOMINSIZE NB_SUPPRESS_WARNINGS
                    ${binding_sources} ${python_sources} ${python_c_sources} ${torch_sources})
marey_target_options(marey_python)
marey_unity(marey_python)
if(MAREY_UNITY)  # as in its own nb_combined.cpp
    set_target_properties(nanobind-static PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
endif()
# Each of these defines one CPython type, or one hook, in the names that CPython's manual gives the parts.
foreach(name IN ITEMS bindings/events_object bindings/ranged_function
                      bindings/parts bindings/record_function bindings/record_function_fast bindings/traceback_object
                      sources/python/monitoring sources/python/py311/profile_hook)
    set_property(SOURCE "${PROJECT_SOURCE_DIR}/src/${name}.cpp" PROPERTY SKIP_UNITY_BUILD_INCLUSION ON)
endforeach()
set(python_dir "${PROJECT_BINARY_DIR}/python/marey")
set_target_properties(marey_python PROPERTIES OUTPUT_NAME _marey LIBRARY_OUTPUT_DIRECTORY "${python_dir}"
                                             INSTALL_RPATH "$ORIGIN/lib")
target_include_directories(marey_python PRIVATE "${PROJECT_SOURCE_DIR}/src")
target_link_libraries(marey_python PRIVATE marey::marey)
set_source_files_properties("${PROJECT_SOURCE_DIR}/src/bindings/module.cpp"
                            PROPERTIES COMPILE_DEFINITIONS MAREY_VERSION="${PROJECT_VERSION}")

# The target that pip builds, whatever else the folder builds.
add_custom_target(marey_package DEPENDS marey_python)
set(library_dir "${MAREY_LIBRARY_OF}")
if(NOT MAREY_LIBRARY_OF)
    set(library_dir "${PROJECT_BINARY_DIR}")
    add_dependencies(marey_python marey marey_cuda marey_view)
    if(TARGET marey_cli)
        add_dependencies(marey_package marey_cli)
    endif()
endif()

# Installed by pip alone, which also brings the package's .py files: not part of `cmake --install`.
install(TARGETS marey_python LIBRARY DESTINATION . COMPONENT marey_python EXCLUDE_FROM_ALL)
if(SKBUILD AND SKBUILD_SCRIPTS_DIR)
    install(PROGRAMS python/marey_command.py DESTINATION "${SKBUILD_SCRIPTS_DIR}" RENAME marey
            COMPONENT marey_python EXCLUDE_FROM_ALL)
endif()

file(GLOB_RECURSE python_files CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/python"
     "${PROJECT_SOURCE_DIR}/python/marey/*.py" "${PROJECT_SOURCE_DIR}/python/marey/*.sql"
     "${PROJECT_SOURCE_DIR}/python/marey/py.typed"
     "${PROJECT_SOURCE_DIR}/python/marey_pytest/*.py")
foreach(file IN LISTS python_files)
    get_filename_component(folder "${file}" DIRECTORY)
    file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/python/${folder}")
    file(CREATE_LINK "${PROJECT_SOURCE_DIR}/python/${file}" "${PROJECT_BINARY_DIR}/python/${file}" SYMBOLIC)
endforeach()
# The types of the extension and of the package's names, for type checkers, editors and the documentation site. Under a
# sanitizer there are none: the package could not be imported without its library.
if(NOT MAREY_SANITIZE)
    set(stubs "${python_dir}/_marey.pyi" "${python_dir}/__init__.pyi")
    add_custom_command(OUTPUT ${stubs}
                       COMMAND "${CMAKE_COMMAND}" -E env "PYTHONPATH=${PROJECT_BINARY_DIR}/python" PYTHONDONTWRITEBYTECODE=1
                               "${Python_EXECUTABLE}" tools/extension_stub.py "${python_dir}"
                       DEPENDS marey_python tools/extension_stub.py tools/extension_stub.pat python/marey/__init__.py
                               python/marey/results/trace.py
                       WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}" COMMENT "Writing the package's type stubs" VERBATIM)
    add_custom_target(marey_stubs ALL DEPENDS ${stubs})
    add_dependencies(marey_package marey_stubs)
    install(FILES ${stubs} DESTINATION . COMPONENT marey_python EXCLUDE_FROM_ALL)
endif()
# marey.torch compiles its observer on the user's machine: sources and headers come with the package.
install(DIRECTORY src/sources/torch/observer DESTINATION torch COMPONENT marey_python EXCLUDE_FROM_ALL)
file(CREATE_LINK "${PROJECT_SOURCE_DIR}/src/sources/torch/observer" "${python_dir}/torch/observer" SYMBOLIC)
file(CREATE_LINK "${PROJECT_SOURCE_DIR}/include" "${python_dir}/include" SYMBOLIC)
file(MAKE_DIRECTORY "${python_dir}/bin" "${python_dir}/lib/cmake/marey")
file(CREATE_LINK "${library_dir}/marey" "${python_dir}/bin/marey" SYMBOLIC)
foreach(file IN ITEMS mareyConfig.cmake mareyConfigVersion.cmake mareyTargets.cmake)
    file(CREATE_LINK "${library_dir}/${file}" "${python_dir}/lib/cmake/marey/${file}" SYMBOLIC)
endforeach()

# One test for each test_*.py in tests/python and tests/agents. Those that take longest come first, so that ctest does not
# end with one.
function(marey_python_tests)
    execute_process(COMMAND "${Python_EXECUTABLE}" -c "import pytest, hypothesis" RESULT_VARIABLE missing
                    OUTPUT_QUIET ERROR_QUIET)
    if(missing)
        marey_left_out("tests of the Python package"
                      "pytest or hypothesis not found (${Python_EXECUTABLE} -m pip install -r tools/python_requirements.txt)")
        return()
    endif()
    # Not the user's or the interpreter's own sanitizer settings, but ours: an interpreter that is not built with the
    # sanitizer must load it first, and the C++ library with it, whose exceptions it watches.
    set(environment "MAREY_BUILD_DIR=${library_dir}" "PYTHONDONTWRITEBYTECODE=1")
    if(MAREY_TEST_INSTALLED_PYTHON)
        list(APPEND environment "PYTHONPATH=")
    else()
        list(APPEND environment "PYTHONPATH=${PROJECT_BINARY_DIR}/python")
    endif()
    if(MAREY_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        set(preload "")
        foreach(library IN ITEMS libasan.so libstdc++.so.6)
            execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -print-file-name=${library} OUTPUT_VARIABLE path
                            OUTPUT_STRIP_TRAILING_WHITESPACE)
            get_filename_component(path "${path}" REALPATH)
            list(APPEND preload "${path}")
        endforeach()
        list(JOIN preload " " preload)
        list(APPEND environment "LD_PRELOAD=${preload}" "PYTHONMALLOC=malloc" "MAREY_TEST_SANITIZER=address")
    elseif(MAREY_SANITIZE)
        marey_left_out("tests of the Python package" "no ${MAREY_SANITIZE} sanitizer for them")
        return()
    endif()
    list(APPEND environment "AGENT_CAUSES=steady")  # make test-explain runs all
    file(GLOB files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/python/test_*.py"
         "${PROJECT_SOURCE_DIR}/tests/agents/test_*.py")
    foreach(file IN LISTS files)
        get_filename_component(name "${file}" NAME_WE)
        string(REGEX REPLACE "^test_" "" name "${name}")
        if(file MATCHES "/agents/")
            string(PREPEND name "agents_")
        endif()
        add_test(NAME python/${name} COMMAND "${Python_EXECUTABLE}" -m pytest -q --no-header --tb=short
                 -c "${PROJECT_SOURCE_DIR}/pyproject.toml" "${file}" WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}/tests/python")
        set_tests_properties(python/${name} PROPERTIES TIMEOUT 600 LABELS python COST 100 SKIP_RETURN_CODE 5
                             ENVIRONMENT "${environment}")
    endforeach()
endfunction()

# dependencies.cmake: what the build can use. None is required: a missing one leaves out the part that needs it and
# prints so; nothing is ever downloaded.

if(MAREY_DEPS_DIR)
    list(PREPEND CMAKE_PREFIX_PATH "${MAREY_DEPS_DIR}")
endif()

find_package(Threads REQUIRED)

# marey_have(<name> <part> <reason> <condition>...): sets MAREY_HAVE_<name>; if it is 0, the part is left out.
function(marey_have name part reason)
    set(MAREY_HAVE_${name} 1 PARENT_SCOPE)
    if(NOT (${ARGN}))
        set(MAREY_HAVE_${name} 0 PARENT_SCOPE)
        marey_left_out("${part}" "${reason}")
    endif()
endfunction()

find_package(zstd QUIET)
marey_have(ZSTD "compression of captures" "zstd not found (apt-get install libzstd-dev)"
           zstd_FOUND)

find_package(ZLIB QUIET)
marey_have(ZLIB "export to .gz" "zlib not found (apt-get install zlib1g-dev)"
           ZLIB_FOUND)

# Readers and writers of other tools' formats.
find_package(SQLite3 QUIET)
marey_have(SQLITE "import of nvprof and Nsight files" "SQLite not found (apt-get install libsqlite3-dev)"
           SQLite3_FOUND)

# Native symbols in tracebacks.
find_path(MAREY_ELFUTILS_DIR elfutils/libdw.h HINTS "${MAREY_DEPS_DIR}/include")
find_library(MAREY_LIBDW NAMES dw HINTS "${MAREY_DEPS_DIR}/lib")
find_library(MAREY_LIBELF NAMES elf HINTS "${MAREY_DEPS_DIR}/lib")
mark_as_advanced(MAREY_ELFUTILS_DIR MAREY_LIBDW MAREY_LIBELF)
marey_have(ELFUTILS "files and lines of native frames" "elfutils not found (apt-get install libdw-dev)"
           MAREY_ELFUTILS_DIR AND MAREY_LIBDW AND MAREY_LIBELF)

find_path(MAREY_PROTOZERO_DIR protozero/pbf_writer.hpp HINTS "${MAREY_DEPS_DIR}/include")
mark_as_advanced(MAREY_PROTOZERO_DIR)
marey_have(PROTOZERO "Perfetto traces" "protozero not found (apt-get install libprotozero-dev)"
           MAREY_PROTOZERO_DIR)

# NVTX comes with CUDA or the PyPI package nvidia-nvtx. Only headers are used: the tool is found at run time.
if(MAREY_BUILD_PYTHON AND NOT MAREY_NVTX_DIR)
    find_package(Python COMPONENTS Interpreter Development.Module)
    file(GLOB nvtx_wheels "${Python_SITELIB}/nvidia/*/include")
endif()
find_path(MAREY_NVTX_DIR nvtx3/nvToolsExt.h HINTS "${MAREY_DEPS_DIR}/include" $ENV{CUDA_HOME}/include
          $ENV{CUDA_PATH}/include /usr/local/cuda/include ${nvtx_wheels})
mark_as_advanced(MAREY_NVTX_DIR)
# CUPTI's header is used only by a test, which compares it with the declarations in src/sources/cuda.
find_path(MAREY_CUPTI_DIR cupti.h HINTS $ENV{CUDA_HOME}/extras/CUPTI/include $ENV{CUDA_HOME}/include
          /usr/local/cuda/extras/CUPTI/include /usr/local/cuda/include)
find_path(MAREY_CUDA_DIR cuda.h HINTS $ENV{CUDA_HOME}/include /usr/local/cuda/include)
mark_as_advanced(MAREY_CUPTI_DIR MAREY_CUDA_DIR)
set(MAREY_HAVE_CUPTI 0)
if(MAREY_CUPTI_DIR AND MAREY_CUDA_DIR)
    set(MAREY_HAVE_CUPTI 1)
endif()
marey_have(NVTX "ranges for NVTX" "nvtx3/nvToolsExt.h not found (it comes with CUDA; pip install nvidia-nvtx)"
           MAREY_NVTX_DIR)

# marey_find_headers(<package> <its target> <header>): the installed package, or else headers in MAREY_DEPS_DIR.
# Sets MAREY_HAVE_<package>.
function(marey_find_headers package target header)
    find_package(${package} QUIET)
    if(NOT TARGET ${target} AND MAREY_DEPS_DIR AND EXISTS "${MAREY_DEPS_DIR}/include/${header}")
        add_library(marey_dep_${package} INTERFACE)
        target_include_directories(marey_dep_${package} SYSTEM INTERFACE "${MAREY_DEPS_DIR}/include")
        target_compile_definitions(marey_dep_${package} INTERFACE ${ARGN})
        add_library(${target} ALIAS marey_dep_${package})
    endif()
    if(TARGET ${target})
        set(MAREY_HAVE_${package} 1 PARENT_SCOPE)
    else()
        set(MAREY_HAVE_${package} 0 PARENT_SCOPE)
    endif()
endfunction()

if(MAREY_BUILD_CLI)
    marey_find_headers(fmt fmt::fmt fmt/core.h FMT_HEADER_ONLY=1)
    marey_find_headers(CLI11 CLI11::CLI11 CLI/CLI.hpp)
    if(NOT MAREY_HAVE_fmt)
        marey_left_out("the command marey" "fmt not found (apt-get install libfmt-dev)")
        set(MAREY_BUILD_CLI OFF)
    elseif(NOT MAREY_HAVE_CLI11)
        marey_left_out("the command marey" "CLI11 not found (apt-get install libcli11-dev)")
        set(MAREY_BUILD_CLI OFF)
    endif()
endif()

if(MAREY_BUILD_TESTS)
    find_package(GTest QUIET)
    if(NOT TARGET GTest::gtest_main)  # perhaps only the sources are installed (Debian's package googletest)
        foreach(folder IN ITEMS "${MAREY_DEPS_DIR}/googletest" /usr/src/googletest)
            if(EXISTS "${folder}/googletest/CMakeLists.txt" AND NOT TARGET gtest_main)
                set(INSTALL_GTEST OFF CACHE BOOL "" FORCE)
                add_subdirectory("${folder}/googletest" googletest EXCLUDE_FROM_ALL)
            endif()
        endforeach()
        if(TARGET gtest_main AND NOT TARGET GTest::gtest_main)
            add_library(GTest::gtest_main ALIAS gtest_main)
        endif()
    endif()
    if(NOT TARGET GTest::gtest_main)
        marey_left_out("tests" "GoogleTest not found (apt-get install libgtest-dev)")
        set(MAREY_BUILD_TESTS OFF)
    endif()
endif()

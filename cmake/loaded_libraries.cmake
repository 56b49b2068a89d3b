# loaded_libraries.cmake: the libraries next to libmarey.so: devices, MPI and the viewer.

# ---------------------------------------------------------------------------------------------- devices

# Each is a library next to libmarey.so, which loads it on request. Vendor libraries are found at run time: the build
# needs none of them.
marey_room_files(sources/cuda "" cuda_sources)
marey_device(marey_cuda ${cuda_sources} "${PROJECT_SOURCE_DIR}/src/trace/device_names.cpp")
set_target_properties(marey_cuda PROPERTIES INSTALL_RPATH "$ORIGIN")
install(TARGETS marey_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT marey)

# ---------------------------------------------------------------------------------------------- MPI

# Stands in front of MPI's functions: linked before MPI, or preloaded. It needs the MPI of the program, so it is not
# part of the Python package.
if(MAREY_BUILD_TESTS OR NOT SKBUILD)  # pip builds only the package, unless the folder builds more
    find_package(MPI QUIET COMPONENTS C)
    if(MPI_C_FOUND)  # the target exists even without an MPI
        marey_room_files(sources/mpi "" mpi_sources)
        marey_device(marey_mpi ${mpi_sources})
        target_compile_definitions(marey_mpi PRIVATE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
        target_link_libraries(marey_mpi PRIVATE MPI::MPI_C)
        set_target_properties(marey_mpi PROPERTIES INSTALL_RPATH "$ORIGIN")
        install(TARGETS marey_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT marey_mpi)
    else()
        marey_left_out("libmarey_mpi" "MPI not found (apt-get install libopenmpi-dev)")
    endif()
endif()

# ---------------------------------------------------------------------------------------------- the viewer

# The server and the page of `marey view`, next to libmarey.so, which loads it on request. Users need no node:
# web/dist/ is committed.
file(GLOB page_files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/web/dist/*")
set(page_source "${PROJECT_BINARY_DIR}/page.cpp")
add_custom_command(OUTPUT "${page_source}"
    COMMAND "${CMAKE_COMMAND}" "-DFILES=${page_files}" "-DOUT=${page_source}"
            -P "${PROJECT_SOURCE_DIR}/cmake/embed_page.cmake"
    DEPENDS ${page_files} "${PROJECT_SOURCE_DIR}/cmake/embed_page.cmake" VERBATIM)
marey_room_files(serve "" serve_sources)
add_library(marey_view_objects OBJECT ${serve_sources} "${page_source}")
marey_target_options(marey_view_objects)
marey_unity(marey_view_objects)
set_property(SOURCE "${page_source}" PROPERTY SKIP_UNITY_BUILD_INCLUSION ON)  # large, and not linted
set_target_properties(marey_view_objects PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_include_directories(marey_view_objects PUBLIC "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src")
target_compile_definitions(marey_view_objects PRIVATE MAREY_VERSION="${PROJECT_VERSION}"
                                                      MAREY_HAVE_ZLIB=${MAREY_HAVE_ZLIB})
target_link_libraries(marey_view_objects PUBLIC Threads::Threads)
if(MAREY_HAVE_ZLIB)
    target_link_libraries(marey_view_objects PUBLIC ZLIB::ZLIB)
endif()
# libmarey.so hides these: they are compiled again.
marey_device(marey_view "${PROJECT_SOURCE_DIR}/src/json/json_writer.cpp" "${PROJECT_SOURCE_DIR}/src/base/utf8.cpp"
             "${PROJECT_SOURCE_DIR}/src/base/parallel.cpp")
target_link_libraries(marey_view PRIVATE marey_view_objects)
set_target_properties(marey_view PROPERTIES INSTALL_RPATH "$ORIGIN")
install(TARGETS marey_view LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT marey)

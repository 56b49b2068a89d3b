# page.cmake: the viewer's page, web/dist/, as a C++ file. Sets page_source.
file(GLOB page_files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/web/dist/*")
set(page_source "${PROJECT_BINARY_DIR}/page.cpp")
add_custom_command(OUTPUT "${page_source}"
    COMMAND "${CMAKE_COMMAND}" "-DFILES=${page_files}" "-DOUT=${page_source}"
            -P "${PROJECT_SOURCE_DIR}/cmake/embed_page.cmake"
    DEPENDS ${page_files} "${PROJECT_SOURCE_DIR}/cmake/embed_page.cmake" VERBATIM)

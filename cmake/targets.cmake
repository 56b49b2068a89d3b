# targets.cmake: what every target is compiled with, and the files of each room.

# Prints that a part is left out, and why.
function(marey_left_out part reason)
    message(STATUS "marey: ${part} left out: ${reason}")
endfunction()

# Compile and link options of every target.
function(marey_target_options target)
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow
        $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Woverloaded-virtual -Wextra-semi>)
    if(MAREY_WERROR)
        target_compile_options(${target} PRIVATE -Werror)
    endif()
    set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden C_VISIBILITY_PRESET hidden
                                               VISIBILITY_INLINES_HIDDEN ON)
    if(MAREY_SANITIZE)
        target_compile_options(${target} PRIVATE -fsanitize=${MAREY_SANITIZE} -fno-omit-frame-pointer
                                                 -fno-sanitize-recover=all)
        target_link_options(${target} PRIVATE -fsanitize=${MAREY_SANITIZE})
        # GCC does not support fences under ThreadSanitizer and warns at each use; the sanitizer then detects less.
        if(MAREY_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
            target_compile_options(${target} PRIVATE -Wno-tsan)
        endif()
        # With sanitizers, GCC 12 takes members of std::regex and std::function for uninitialized.
        if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
            target_compile_options(${target} PRIVATE -Wno-error=maybe-uninitialized)
        endif()
    endif()
    if(MAREY_FUZZ)
        # Clang 14 refers to counters of inline functions from jump tables outside their section groups, which
        # linkers reject: hence no jump tables.
        target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link,address,undefined -fno-jump-tables
                                                 -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
        target_link_options(${target} PRIVATE -fsanitize=address,undefined)
    endif()
endfunction()

# marey_unity(<target>): compiles the target's files one room at a time, so that each header is parsed once. File-local
# names must therefore be unique in a room. `make check-alone` parses every file by itself, as a build with
# -DMAREY_UNITY=OFF does.
function(marey_unity target)
    if(NOT MAREY_UNITY)
        return()
    endif()
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
    # A public class may have a member of a file-local type; GCC reports that in every file but the main one.
    target_compile_options(${target} PRIVATE
        $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>
        $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-shadow>)  # it warns of the names of other files
    get_target_property(sources ${target} SOURCES)
    foreach(file IN LISTS sources)
        string(REGEX REPLACE "^.*/src/(sources/)?([a-z]+)/.*$" "\\2" room "${file}")
        if(room STREQUAL file)
            set(room program)
        endif()
        if(file MATCHES "/src/(formats|analyze)/(chrome|perfetto|findings)/")  # as large as rooms
            set(room ${CMAKE_MATCH_2})
        endif()
        set_source_files_properties("${file}" PROPERTIES UNITY_GROUP ${room})
    endforeach()
endfunction()

# marey_room_files(<room> <kind> <out>): kind is test, fixture, benchmark, fuzzer, or "" for product files.
function(marey_room_files room kind out)
    file(GLOB files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${room}/*.cpp")
    if(NOT room STREQUAL "sources/torch")  # whose folder, the observer, is compiled against the user's PyTorch
        file(GLOB_RECURSE files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${room}/*.cpp")
    endif()
    if(kind)
        list(FILTER files INCLUDE REGEX "_${kind}\\.cpp$")
    else()
        list(FILTER files EXCLUDE REGEX "_(test|fixture|benchmark|fuzzer)\\.cpp$")
    endif()
    set(${out} "${files}" PARENT_SCOPE)
endfunction()

# marey_device(<target> <source>...): the library of a device, which libmarey.so loads when asked for it.
function(marey_device target)
    add_library(${target} MODULE ${ARGN})
    marey_target_options(${target})
    marey_unity(${target})
    target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/src")
    target_link_libraries(${target} PRIVATE marey::marey Threads::Threads ${CMAKE_DL_LIBS})
    target_link_options(${target} PRIVATE -Wl,-z,nodelete)
endfunction()

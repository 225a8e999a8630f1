# One library a layer. The include path of each library holds only the layers that it may see: a folder of
# symbolic links is made for each layer, so an include that goes upwards does not compile.
#
#   base (engine/base) <- index <- engine (store, types, commands, tx) <- persistence <- server
#   tools: everything but server
# Shared by all build trees, so that ccache serves one tree with the objects of another.
set(HOTKV_INC ${CMAKE_SOURCE_DIR}/build/inc)

function(hotkv_layer_links layer)
  foreach(path ${ARGN})
    get_filename_component(parent ${HOTKV_INC}/${layer}/${path} DIRECTORY)
    file(MAKE_DIRECTORY ${parent})
    file(CREATE_LINK ${CMAKE_SOURCE_DIR}/${path} ${HOTKV_INC}/${layer}/${path} SYMBOLIC)
  endforeach()
endfunction()

hotkv_layer_links(base engine/base)
hotkv_layer_links(index index)
hotkv_layer_links(engine engine/store engine/types engine/commands engine/tx)
hotkv_layer_links(persistence persistence)
hotkv_layer_links(server server)
hotkv_layer_links(tools tools)
hotkv_layer_links(tests tests)

# hotkv_library(name LAYER own-layer SEES layers... LINKS targets... SOURCES files...)
function(hotkv_library name)
  cmake_parse_arguments(A "" "LAYER" "SEES;LINKS;SOURCES" ${ARGN})
  add_library(${name} STATIC ${A_SOURCES})
  foreach(layer ${A_LAYER} ${A_SEES})
    target_include_directories(${name} PRIVATE ${HOTKV_INC}/${layer})
  endforeach()
  target_include_directories(${name} INTERFACE ${HOTKV_INC}/${A_LAYER})
  target_link_libraries(${name} PUBLIC ${A_LINKS} PRIVATE hotkv_flags)
endfunction()

# Finds what the programs outside need: Abseil, Protobuf, CLI11, nlohmann-json. Static where there are static libraries, so that
# build/attntrace can be carried to a machine that has none of them.
#
# Imported targets belong to the folder that finds them: include this where a program is linked.
set(Protobuf_USE_STATIC_LIBS ON)
find_package(Protobuf REQUIRED)
find_package(absl REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)

# Debian's package file names the shared objects of Abseil, though the archives lie beside them.
get_directory_property(_imported IMPORTED_TARGETS)
foreach(_target IN LISTS _imported)
  if(_target MATCHES "^absl::")
    get_target_property(_type ${_target} TYPE)
    get_target_property(_configurations ${_target} IMPORTED_CONFIGURATIONS)
    if(_type STREQUAL "SHARED_LIBRARY" AND _configurations)
      foreach(_configuration IN LISTS _configurations)
        get_target_property(_location ${_target} IMPORTED_LOCATION_${_configuration})
        string(REGEX REPLACE "\\.so(\\.[0-9.]+)?$" ".a" _archive "${_location}")
        if(EXISTS ${_archive})
          set_target_properties(${_target} PROPERTIES IMPORTED_LOCATION_${_configuration} ${_archive})
        endif()
      endforeach()
    endif()
  endif()
endforeach()

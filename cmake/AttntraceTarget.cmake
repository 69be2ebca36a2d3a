# attntrace_target(NAME): what every target of ours gets. Flags are per target, never global.
function(attntrace_target name)
  target_compile_features(${name} PRIVATE cxx_std_20)
  set_target_properties(${name} PROPERTIES CXX_EXTENSIONS OFF)
  target_compile_options(${name} PRIVATE -Wall -Wextra -Wno-unused-parameter)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
endfunction()

# attntrace_outside(NAME): a target that never enters a traced process.
function(attntrace_outside name)
  attntrace_target(${name})
  target_include_directories(${name} PRIVATE ${PROJECT_BINARY_DIR})
  if(ATTNTRACE_SANITIZE)
    target_compile_options(${name} PRIVATE -fsanitize=address,undefined -fno-omit-frame-pointer)
    target_link_options(${name} PRIVATE -fsanitize=address,undefined)
  endif()
endfunction()

# attntrace_injected(NAME MAP): a shared library that lives in a traced process. It exports what the version script MAP names and
# nothing else, and is never sanitized (the host is not).
function(attntrace_injected name map)
  attntrace_target(${name})
  set_target_properties(${name} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON POSITION_INDEPENDENT_CODE ON
                                           LINK_DEPENDS ${map})
  target_link_options(${name} PRIVATE -Wl,--version-script=${map} -Wl,-z,defs -Wl,--as-needed)
endfunction()

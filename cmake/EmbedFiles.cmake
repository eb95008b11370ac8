# sluice_embed(OUT.cc NAMESPACE name=file…): a source file with each file's bytes as a string literal, and OUT.h that
# declares them: `namespace NAMESPACE { extern const std::string_view name; }`. Made anew when a file changes.
function(sluice_embed output namespace)
  set(files)
  foreach(pair IN LISTS ARGN)
    string(REGEX REPLACE "^[^=]+=" "" file "${pair}")
    list(APPEND files "${file}")
  endforeach()
  string(REGEX REPLACE "\\.cc$" ".h" header "${output}")
  string(REPLACE ";" "\\;" pairs "${ARGN}")  # one argument of the command
  set(step ${CMAKE_COMMAND} "-DOUTPUT=${output}" "-DHEADER=${header}" "-DNAMESPACE=${namespace}" "-DPAIRS=${pairs}" -P
           "${PROJECT_SOURCE_DIR}/cmake/embed_files_step.cmake")
  if(NOT EXISTS "${header}")
    # Tools that read sources without a build find it, too.
    execute_process(COMMAND ${step} COMMAND_ERROR_IS_FATAL ANY)
  endif()
  add_custom_command(
    OUTPUT "${output}" "${header}"
    COMMAND ${step}
    DEPENDS ${files} "${PROJECT_SOURCE_DIR}/cmake/embed_files_step.cmake"
    VERBATIM)
endfunction()

# cmake -DNAME=kPage -DIN=FILE,FILE -DOUT=FILE -P embed.cmake: the files as an array of C++ strings, to include.
set(code "")
string(REPLACE "," ";" files "${IN}")
foreach(file IN LISTS files)
  file(READ ${file} text)
  string(APPEND code "R\"embedded(${text})embedded\",\n")
endforeach()
file(WRITE ${OUT} "constexpr std::string_view ${NAME}[] = {\n${code}};\n")

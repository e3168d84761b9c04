"""Reading files of others, whatever they hold: no reader opens or decodes a file in a way of its own.

content      the bytes of a file, unpacked when it is packed, without a byte order mark; lines of a text
json_stream  a big JSON document, member by member, in bounded memory
wire         the fields of protobuf's messages
sheet        CSV: rows by column name
numbers      text to whole numbers and ns, one value or a whole column
"""

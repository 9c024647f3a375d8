/* guest/guest_image.S: see guest_image.h; the build says where the program is */
        .section .rodata
        .global guest_image
        .global guest_image_size
        .type guest_image, @object
        .type guest_image_size, @object
        .balign 16
guest_image:
        .incbin GUEST_IMAGE_FILE
guest_image_end:
        .size guest_image, guest_image_end - guest_image
        .balign 8
guest_image_size:
        .quad guest_image_end - guest_image
        .size guest_image_size, 8
        .section .note.GNU-stack, "", %progbits

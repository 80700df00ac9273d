"""What installs, starts and watches over the product: processes, embedded servers, health."""

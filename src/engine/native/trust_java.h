/* engine/native/trust_java.h: trusted certificates in the form that Java reads
 *
 * Java programs read neither the bundle of the host nor any variable, but the file lib/security/cacerts of their
 * runtime. Its old form (JKS) is read by every version, and is simple: entries, and a SHA-1 over them and the customary
 * password, which keeps nothing secret and nothing safe; it is there because readers that are given the password look.
 */
#ifndef CLOCHE_ENGINE_NATIVE_TRUST_JAVA_H
#define CLOCHE_ENGINE_NATIVE_TRUST_JAVA_H

#include "base/buf.h"
#include "base/str.h"

#define TRUST_JAVA_PASSWORD "changeit"  /* of every cacerts */

/* Append the store with the certificates of @pem, in their order, to the empty @out. What is no certificate in PEM form
 * is passed over. How many there are, or -1: no room in @out. Pure. */
int trust_java(struct str pem, struct buf *out);

#endif

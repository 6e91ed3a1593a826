/** The name of an object in the head of an answer. */

/** Offers the bytes for saving, never for showing (RFC 6266). */
export function disposition(name: string): string {
  // Besides letters and digits only what RFC 5987 lets stand as it is.
  const encoded = encodeURIComponent(name).replace(/['()*!]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
  return `attachment; filename*=UTF-8''${encoded}`;
}

/** The name in a header of that form; undefined for any other. */
export function nameInDisposition(header: string | undefined): string | undefined {
  const encoded = /^attachment; filename\*=UTF-8''([\w.~%-]{1,1024})$/.exec(header ?? '')?.[1];
  if (encoded === undefined) return undefined;
  try {
    return decodeURIComponent(encoded);
  } catch {
    return undefined;
  }
}

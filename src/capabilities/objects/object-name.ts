/** The name of an object in HTTP headers. */

/** Makes browsers save the bytes instead of showing them (RFC 6266). */
export function disposition(name: string): string {
  // Percent-encodes everything except the characters that RFC 5987 allows.
  const encoded = encodeURIComponent(name).replace(/['()*!]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
  return `attachment; filename*=UTF-8''${encoded}`;
}

/** The name in a header of this form, or undefined. */
export function nameInDisposition(header: string | undefined): string | undefined {
  const encoded = /^attachment; filename\*=UTF-8''([\w.~%-]{1,1024})$/.exec(header ?? '')?.[1];
  if (encoded === undefined) return undefined;
  try {
    return decodeURIComponent(encoded);
  } catch {
    return undefined;
  }
}

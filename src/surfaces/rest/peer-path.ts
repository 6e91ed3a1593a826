/** True for the gateway, which the access list of the called agent governs: no token, but remote content. */
export function isPeerPath(url: string | undefined): boolean {
  return url !== undefined && /^\/aid(?:[/?]|$)/.test(url);
}

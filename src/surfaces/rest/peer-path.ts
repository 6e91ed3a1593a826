/** True for gateway paths, which return remote content. */
export function isPeerPath(url: string | undefined): boolean {
  return url !== undefined && /^\/aid(?:[/?]|$)/.test(url);
}

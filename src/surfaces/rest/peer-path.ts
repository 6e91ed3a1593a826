/** True for the gateway, where remote content appears. */
export function isPeerPath(url: string | undefined): boolean {
  return url !== undefined && /^\/aid(?:[/?]|$)/.test(url);
}

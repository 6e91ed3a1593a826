/** True for gateway paths, which return remote content. */
export function isPeerPath(url: string | undefined): boolean {
  return url !== undefined && /^\/aid(?:[/?]|$)/.test(url);
}

/** True for the page of the panel. */
export function isPanelPage(url: string | undefined): boolean {
  return url !== undefined && /^\/(?:\?|$)/.test(url);
}

/** True for paths that never need a token. The route must also be declared open. */
export function isOpenPath(url: string | undefined): boolean {
  return url !== undefined && (isPanelPage(url) || /^\/panel\/[\w.-]+(?:\?|$)/.test(url));
}

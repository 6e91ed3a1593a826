/** True for the page of the panel. */
export function isPanelPage(url: string | undefined): boolean {
  return url !== undefined && /^\/(?:\?|$)/.test(url);
}

/** True for what is served without a token where all else needs one: the route still has to say that it is open. */
export function isOpenPath(url: string | undefined): boolean {
  return url !== undefined && (isPanelPage(url) || /^\/panel\/[\w.-]+(?:\?|$)/.test(url));
}

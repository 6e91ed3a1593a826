/** Headers that a request to a remote node or agent carries for this node. The remote side never sees them. */
export const VIA_HEADERS = { accessToken: 'svc-access-token', localAid: 'svc-local-aid' } as const;

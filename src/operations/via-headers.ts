/** What a request to a remote node says of itself; the remote node never sees these headers. */
export const VIA_HEADERS = { accessToken: 'svc-access-token', localAid: 'svc-local-aid' } as const;

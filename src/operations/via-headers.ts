/** What a request to a remote node or agent says of itself; the other side never sees these headers. */
export const VIA_HEADERS = { accessToken: 'svc-access-token', localAid: 'svc-local-aid' } as const;

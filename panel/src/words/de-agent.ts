/** Was die Seiten eines Agenten sagen. */
export const deAgent = {} as const;

/** What the pages of an agent say. */
export const enAgent = {} as const;

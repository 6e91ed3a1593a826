/** エージェントのページの文。 */
export const jaAgent = {} as const;

/** 代理页面的文本。 */
export const zhAgent = {} as const;

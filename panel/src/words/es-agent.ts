/** Lo que dicen las páginas de un agente. */
export const esAgent = {} as const;

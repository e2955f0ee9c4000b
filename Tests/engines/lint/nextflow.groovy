// Nextflow is a dialect of Groovy: both files must compile, and the settings must state the action for each exit
// status.
import org.codehaus.groovy.control.CompilationUnit
import org.codehaus.groovy.control.Phases

def folder = new File(args[0])
def unit = new CompilationUnit()
unit.addSource(new File(folder, 'main.nf'))
unit.compile(Phases.CONVERSION)

Integer.metaClass.getGB = { -> "$delegate GB" }
def slurper = new ConfigSlurper()
slurper.binding = [launchDir: '/launch', task: [:]]
def config = slurper.parse(new File(folder, 'nextflow.config').text)
assert config.params.shards == 8 && config.workflow.failOnIgnore && config.process.maxRetries == 3
def strategy = config.process.errorStrategy
def rules = [64, 65, 74, 75, 137].collectEntries { status ->
  strategy.delegate = [task: [exitStatus: status]]
  strategy.resolveStrategy = Closure.DELEGATE_FIRST
  [status, strategy.call()]
}
assert rules == [64: 'ignore', 65: 'ignore', 74: 'retry', 75: 'retry', 137: 'retry']
println 'main.nf, nextflow.config: Groovy compiles them; the settings are what they are meant to be'
